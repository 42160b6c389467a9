package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// start runs a worker until stop is called, which waits for it.
func (b backlog) start(cfg falldue.Config, handle func(*falldue.Queue)) (stop func()) {
	b.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	q, err := falldue.New(b.db, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	handle(q)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	}
}

// handle returns a function that handles kinds of raw JSON with a configuration.
func handle(cfg falldue.KindConfig, fn func(context.Context, falldue.Task[json.RawMessage]) error, kinds ...string) func(*falldue.Queue) {
	return func(q *falldue.Queue) {
		for _, name := range kinds {
			falldue.Handle(q, falldue.NewKind[json.RawMessage](name, cfg), fn)
		}
	}
}

func succeed(context.Context, falldue.Task[json.RawMessage]) error { return nil }

// workers waits until the workers are as ok wants them, and returns them.
func (b backlog) workers(i *ops.Ops, what string, ok func([]ops.Worker) bool) []ops.Worker {
	b.t.Helper()
	deadline, tick := time.Now().Add(testdb.Patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		list, err := i.Workers(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if ok(list) {
			return list
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("waited for %s; the workers are %+v", what, list)
		}
		<-tick.C
	}
}

// announced returns a condition of so many workers.
func announced(n int) func([]ops.Worker) bool {
	return func(list []ops.Worker) bool { return len(list) == n }
}

// enqueue stores a task of a kind.
func (b backlog) enqueue(kind string, opts ...falldue.EnqueueOptions) int64 {
	b.t.Helper()
	receipt, err := falldue.NewKind[json.RawMessage](kind, falldue.KindConfig{}).Enqueue(b.t.Context(), b.queue, json.RawMessage("{}"), opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	return receipt.ID
}

// shift moves moments of a table into the past.
func (b backlog) shift(table, moment string, by time.Duration, where string) {
	b.t.Helper()
	server, err := dialect.Probe(b.t.Context(), b.db)
	if err != nil {
		b.t.Fatal(err)
	}
	b.db.MustExec("update falldue_" + table + " set " + moment + " = " + server.Clock().Shift(moment, fmt.Sprint(-by.Microseconds())) + " where " + where)
}

// TestWorkers follows two workers of different releases from their start to their end, one
// of which dies.
func TestWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		if list, err := i.Workers(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("the workers of an empty database are %+v, error %v", list, err)
		}
		started, release := make(chan struct{}), make(chan struct{})
		slow := func(context.Context, falldue.Task[json.RawMessage]) error {
			close(started)
			<-release
			return nil
		}
		stopOld := b.start(falldue.Config{Name: "old", Concurrency: 3, Queues: map[string]falldue.QueueConfig{"default": {}, "other": {Concurrency: 4, Limits: []falldue.Limit{falldue.AtMost(20)}}}},
			handle(falldue.KindConfig{Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.Rate(5, time.Minute).PerKey()}}, slow, "charge", "mail"))
		defer stopOld()
		b.workers(i, "the first worker", announced(1))
		b.enqueue("charge")
		<-started
		stopNew := b.start(falldue.Config{Name: "new"}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Minute)}, succeed, "charge"))
		b.enqueue("thumbnail")
		b.enqueue("charge", falldue.EnqueueOptions{Queue: "images"})

		list := b.workers(i, "two workers", announced(2))
		first := list[0]
		if !strings.HasPrefix(first.ID, "old/") || !first.Live() || first.Stopping || first.Host == "" || first.PID == 0 || first.Concurrency() != 7 ||
			!slices.Equal(first.QueueNames(), []string{"default", "other"}) || !slices.Equal(first.KindNames(), []string{"charge", "mail"}) ||
			!slices.Equal(first.Queues["other"].Limits, []string{"AtMost(20)"}) || !slices.Equal(first.Kinds["mail"].Limits, []string{"Rate(5, 1m0s).PerKey()"}) ||
			first.Kinds["mail"].Policy != "delay 1h" || first.Seen.Before(first.Started) || first.Now.Before(first.Seen) {
			t.Errorf("the first worker is %+v", first)
		}
		policies := ops.KindPolicies(list)
		if got := policies["charge"]; len(got) != 2 || got[0].Policy == got[1].Policy || len(got[0].Workers) != 1 || len(policies["mail"]) != 1 {
			t.Errorf("the policies of kinds are %+v", policies)
		}
		queues, err := i.Queues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := ops.Unhandled(queues, list); !slices.Equal(got, []ops.QueueKind{{"default", "thumbnail"}, {"images", "charge"}}) {
			t.Errorf("no worker handles %+v", got)
		}

		stopNew() // it removes itself
		if list := b.workers(i, "one worker", announced(1)); list[0].ID != first.ID {
			t.Errorf("the worker that is left is %+v", list[0])
		}
		// The other one dies: nobody hears of it for a minute, and then for an hour.
		b.shift("workers", "seen_at", 61*time.Second, "id = '"+first.ID+"'")
		list = b.workers(i, "the dead worker", announced(1))
		if list[0].Live() || len(ops.KindPolicies(list)) != 0 || len(ops.Unhandled(queues, list)) != 3 {
			t.Errorf("a worker that was not seen for a minute is %+v", list[0])
		}
		b.db.MustExec("update falldue_workers set id = 'dead', info = '{}'")
		b.shift("workers", "seen_at", time.Hour, "id = 'dead'")
		defer b.start(falldue.Config{Name: "third"}, handle(falldue.KindConfig{}, succeed, "mail"))()
		b.workers(i, "the cleaner", func(list []ops.Worker) bool {
			return !slices.ContainsFunc(list, func(w ops.Worker) bool { return w.ID == "dead" })
		})
		close(release)
	})
}

// TestUnhandledKindsThatAreBlocked: nobody handles the last task of a flow, which is known before the
// others have run.
func TestUnhandledKindsThatAreBlocked(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		params := func(kind string) falldue.EnqueueParams {
			return falldue.NewKind[int](kind, falldue.KindConfig{}).Params(0, falldue.EnqueueOptions{Delay: time.Hour})
		}
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail", "charge"))()
		list := b.workers(i, "the worker", announced(1))
		for _, f := range []*flow.Flow{
			flow.Chain(params("mail"), params("charge"), params("mail")),
			flow.Batch(params("mail"), params("thumbnail")).Then(params("report")),
			flow.Batch(params("mail")).Then(params("thumbnail")),
		} {
			if _, err := f.Enqueue(t.Context(), b.queue); err != nil {
				t.Fatal(err)
			}
		}
		queues, err := i.Queues(t.Context())
		if err != nil || len(queues) != 1 || !slices.Equal(queues[0].Kinds, []string{"mail", "thumbnail"}) || !slices.Equal(queues[0].Blocked, []string{"charge", "mail", "report", "thumbnail"}) || queues[0].Lanes != 2 {
			t.Errorf("the queues are %+v, error %v", queues, err)
		}
		if got := ops.Unhandled(queues, list); !slices.Equal(got, []ops.QueueKind{{"default", "report"}, {"default", "thumbnail"}}) {
			t.Errorf("no worker handles %+v", got)
		}
		if known, err := i.KnowsKind(t.Context(), "report"); err != nil || !known {
			t.Errorf("a kind that is blocked is known: %v, error %v", known, err)
		}
	})
}

// TestUnreadableWorkers: a row that somebody has edited hides no other.
func TestUnreadableWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))()
		b.workers(i, "the worker", announced(1))
		b.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info) select 'a', started_at, seen_at, '[]' from falldue_workers")
		list := b.workers(i, "both", announced(2))
		bad := slices.IndexFunc(list, func(w ops.Worker) bool { return w.ID == "a" })
		if list[bad].Unreadable == nil || list[1-bad].Unreadable != nil || len(list[1-bad].Kinds) != 1 {
			t.Errorf("the workers are %+v", list)
		}
	})
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestRefusedAnnouncementStopsNothing: a worker that may not write the table of workers runs
// tasks, and says so once.
func TestRefusedAnnouncementStopsNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.db.MustExec("drop table falldue_workers")
		logged, ran := make(lines, 100), make(chan struct{})
		onlyFailures := &slog.HandlerOptions{Level: slog.LevelWarn} // a worker that waits for the handler tells that, too
		stop := b.start(falldue.Config{Logger: slog.New(slog.NewTextHandler(logged, onlyFailures)), PollInterval: 20 * time.Millisecond},
			handle(falldue.KindConfig{}, func(context.Context, falldue.Task[json.RawMessage]) error { close(ran); return nil }, "mail"))
		if line := <-logged; !strings.Contains(line, "cannot write the worker's heartbeat") {
			t.Errorf("logged %s", line)
		}
		b.enqueue("mail")
		<-ran
		stop()
		if len(logged) > 0 {
			t.Errorf("logged %s, too", <-logged)
		}
		if _, err := b.ops(nil).Workers(t.Context()); err == nil {
			t.Error("there is a list of workers without their table")
		}
	})
}

// TestPoliciesOfLiveWorkers: they are known without being given, and others go before them.
func TestPoliciesOfLiveWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Hour)}, succeed, "mail"))()
		b.workers(i, "the worker", announced(1))
		b.add("mail", 1, 1, 10*time.Minute, falldue.EnqueueOptions{Delay: time.Hour})
		for want, i := range map[time.Duration]*ops.Ops{50 * time.Minute: i, 20 * time.Minute: b.ops(map[string]backoff.Policy{"": backoff.Constant(30 * time.Minute)})} {
			list, err := i.Queues(t.Context())
			if err != nil || len(list) != 1 || !b.near(list[0].FirstDue, list[0].Now.Add(want)) {
				t.Errorf("%+v, error %v; want a task that is due in %v", list, err, want)
			}
			if w := b.why(i, 1); !b.near(w.Next(), w.Task.Now.Add(want)) {
				t.Errorf("%+v, want that it is due in %v", w, want)
			}
		}
	})
}

// TestLongestRunning: the announcement of a worker that stops has its running tasks, the longest running first, and they
// count for its limits.
func TestLongestRunning(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, testdb.SQLite)
	goOn, began := make(chan struct{}), make(chan int64, 2)
	stop := b.start(falldue.Config{Concurrency: 2}, handle(falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(2), falldue.AtMost(1).PerKey()}}, func(_ context.Context, task falldue.Task[json.RawMessage]) error {
		began <- task.ID
		<-goOn
		return nil
	}, "hangs"))
	o := ops.New(b.queue)
	var ids []int64
	for range 2 {
		receipt, err := falldue.NewKind[json.RawMessage]("hangs", falldue.KindConfig{}).Enqueue(t.Context(), b.queue, json.RawMessage("{}"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
		<-began
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	list := b.workers(o, "stopping", func(list []ops.Worker) bool { return len(list) == 1 && list[0].Stopping })
	tasks := ops.LongestRunning(list)
	if len(tasks) != 2 || tasks[0].ID != ids[0] || tasks[1].ID != ids[1] || tasks[0].Kind != "hangs" || tasks[0].Queue != falldue.DefaultQueue ||
		tasks[0].Attempt != 1 || tasks[0].Worker != list[0].ID || tasks[0].Since.After(list[0].Now) || tasks[1].Since.Before(tasks[0].Since) {
		t.Errorf("the running tasks are %+v", tasks)
	}
	limits, err := o.Limits(t.Context(), list)
	if err != nil || len(limits) != 2 || limits[0].PerKey == limits[1].PerKey {
		t.Errorf("the limits are %+v (error %v)", limits, err)
	}
	for _, l := range limits {
		slices.Sort(l.Tasks)
		if l.Owner != "kind hangs" || !l.PerKey && (!l.Full() || l.Taken() != 2 || !slices.Equal(l.Tasks, ids) || l.Text != "AtMost(2)") {
			t.Errorf("a limit is %+v", l)
		}
		if keys, _, err := o.FullestKeys(t.Context(), l, 20); err != nil || len(keys) != 0 {
			t.Errorf("the fullest keys of %s are %+v (error %v), though no task has a key", l.Text, keys, err)
		}
	}
	close(goOn)
	<-stopped
}
