package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// gauge counts what runs concurrently.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() {
	for now := g.now.Add(1); ; {
		if most := g.most.Load(); now <= most || g.most.CompareAndSwap(most, now) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// limitedRuns has handlers that count concurrent runs by the tasks' arguments, send the counts to
// started, and continue until they receive from release or the worker stops.
type limitedRuns struct {
	started chan string
	release chan struct{}
	mu      sync.Mutex
	gauges  map[string]*gauge
}

func newLimitedRuns() *limitedRuns {
	return &limitedRuns{started: make(chan string, 10_000), release: make(chan struct{}), gauges: map[string]*gauge{}}
}

// gauge returns the gauge of a name.
func (r *limitedRuns) gauge(name string) *gauge {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gauges[name] == nil {
		r.gauges[name] = &gauge{}
	}
	return r.gauges[name]
}

func (r *limitedRuns) handle(ctx context.Context, task falldue.Task[string]) error {
	gauges := []*gauge{r.gauge(task.Args), r.gauge(task.Queue), r.gauge("all")}
	for _, g := range gauges {
		g.enter()
	}
	defer func() {
		for _, g := range gauges {
			g.leave()
		}
	}()
	r.started <- task.Args
	select {
	case <-r.release:
	case <-ctx.Done():
	}
	return nil
}

// enqueueSame stores n tasks with the same argument, in one call.
func enqueueSame(t *testing.T, q *falldue.Queue, k falldue.Kind[string], n int, arg string, opts ...falldue.EnqueueOptions) {
	t.Helper()
	if _, err := k.EnqueueMany(t.Context(), q, slices.Repeat([]string{arg}, n), opts...); err != nil {
		t.Fatal(err)
	}
}

// runProbe enqueues a task that no limit holds back, behind all that waits, and waits until it
// runs: a worker has tried to claim what waits.
func runProbe(t *testing.T, q *falldue.Queue, probe falldue.Kind[string], ran <-chan string) {
	t.Helper()
	enqueue(t, q, probe, "", falldue.EnqueueOptions{Priority: new(9), Queue: "probes"})
	receive(t, ran, "a task without a limit")
}

var limitCases = []conformanceCase{
	{"no more tasks of a kind or a key run concurrently than AtMost allows, on all workers together", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[string]("limited", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(2).PerKey(), falldue.AtMost(3)}})
		probe, probed := falldue.NewKind[string]("probe", falldue.KindConfig{}), make(chan string, 10)
		runs := newLimitedRuns()
		var q *falldue.Queue
		for range 2 {
			q = f.queueOn(t, f.open(t), falldue.Config{ShutdownTimeout: -1, Queues: map[string]falldue.QueueConfig{"default": {}, "probes": {}}})
			falldue.Handle(q, k, runs.handle)
			falldue.Handle(q, probe, func(context.Context, falldue.Task[string]) error { probed <- ""; return nil })
			startWorker(t, q)
		}
		for _, key := range []string{"a", "b", ""} {
			enqueueSame(t, q, k, 4, key, falldue.EnqueueOptions{Key: key})
		}
		for range 3 {
			receive(t, runs.started, "as many tasks as the kind's limit allows")
		}
		runProbe(t, q, probe, probed)
		if n := runs.gauge("all").now.Load(); n != 3 {
			t.Errorf("%d tasks of the kind run, want 3", n)
		}
		close(runs.release)
		for range 9 {
			receive(t, runs.started, "the other tasks")
		}
		for name, most := range map[string]int64{"all": 3, "a": 2, "b": 2} {
			if got := runs.gauge(name).most.Load(); got > most {
				t.Errorf("%d tasks of %s ran concurrently; the limit is %d", got, name, most)
			}
		}
	}},
	{"a limit of a part of keys counts the tasks of each of its values, and pauses, filters and why take a part", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[string]("hook", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(2).PerKey("tenant"), falldue.InOrder()}})
		key := func(tenant, endpoint string) falldue.EnqueueOptions {
			return falldue.EnqueueOptions{Key: falldue.KeyOf("tenant", tenant, "endpoint", endpoint)}
		}
		probe, probed := falldue.NewKind[string]("probe", falldue.KindConfig{}), make(chan string, 10)
		q := f.queue(t, falldue.Config{ShutdownTimeout: -1, Queues: map[string]falldue.QueueConfig{"default": {}, "probes": {}}})
		runs := newLimitedRuns()
		falldue.Handle(q, k, runs.handle)
		falldue.Handle(q, probe, func(context.Context, falldue.Task[string]) error { probed <- ""; return nil })
		for _, endpoint := range []string{"a", "b", "c"} {
			enqueueSame(t, q, k, 2, "42", key("42", endpoint))
		}
		enqueueSame(t, q, k, 2, "4", key("4", "a"))
		paused := falldue.Subject{Key: falldue.KeyOf("tenant", "4")}
		if err := q.Pause(t.Context(), paused); err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		for range 2 {
			if tenant := receive(t, runs.started, "as many tasks of a tenant as the limit allows"); tenant != "42" {
				t.Errorf("a task of tenant %s started, which is paused", tenant)
			}
		}
		runProbe(t, q, probe, probed)
		if n := runs.gauge("all").now.Load(); n != 2 {
			t.Errorf("%d tasks run, want 2", n)
		}
		for part, want := range map[string]int{"tenant=42": 6, "endpoint=a": 4, "tenant=42/endpoint=a": 2, "tenant=4": 2, "tenant=2": 0} {
			page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Key: part})
			if err != nil || len(page.Tasks) != want {
				t.Errorf("%d tasks with the part %s, error %v; want %d", len(page.Tasks), part, err, want)
			}
		}
		tasks, err := ops.New(q).Tasks(t.Context(), ops.Filter{Key: "tenant=42"})
		waiting := slices.IndexFunc(tasks.Tasks, func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" })
		if err != nil || waiting < 0 {
			t.Fatal(tasks, err)
		}
		why, err := ops.New(q).Why(t.Context(), tasks.Tasks[waiting].ID)
		if err != nil || !slices.ContainsFunc(why.Conditions, func(c ops.Condition) bool {
			return strings.HasPrefix(c.Describe(why.Task), "AtMost(2).PerKey(\"tenant\") of kind hook, for tenant=42, admits no more task")
		}) {
			t.Errorf("why: %+v, error %v", why.Conditions, err)
		}
		if err := q.Resume(t.Context(), paused); err != nil {
			t.Fatal(err)
		}
		if tenant := receive(t, runs.started, "a task of the tenant that was paused"); tenant != "4" {
			t.Errorf("a third task of tenant %s started", tenant)
		}
		close(runs.release)
		for range 5 {
			receive(t, runs.started, "the other tasks")
		}
		if got := runs.gauge("42").most.Load(); got != 2 {
			t.Errorf("%d tasks of a tenant ran concurrently; the limit is 2", got)
		}
	}},
	{"a queue's limit counts the tasks of all its kinds and leaves other queues alone, and one for each key leaves tasks without a key alone", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{ShutdownTimeout: -1, Queues: map[string]falldue.QueueConfig{
			"default": {Limits: []falldue.Limit{falldue.AtMost(2)}},
			"other":   {Limits: []falldue.Limit{falldue.AtMost(1).PerKey()}},
		}})
		runs := newLimitedRuns()
		for _, name := range []string{"one", "two"} {
			k := falldue.NewKind[string](name, falldue.KindConfig{})
			falldue.Handle(q, k, runs.handle)
			for _, queue := range []string{"default", "other"} {
				enqueueSame(t, q, k, 3, "", falldue.EnqueueOptions{Queue: queue})
			}
		}
		startWorker(t, q)
		for range 2 + 6 { // two of the queue with the limit, and all of the other one
			receive(t, runs.started, "a task that no limit holds back")
		}
		if d, o := runs.gauge("default").now.Load(), runs.gauge("other").now.Load(); d != 2 || o != 6 {
			t.Errorf("%d and %d tasks run; want 2 and 6", d, o)
		}
		close(runs.release)
		for range 4 {
			receive(t, runs.started, "the other tasks")
		}
		if got := runs.gauge("default").most.Load(); got != 2 {
			t.Errorf("%d tasks of the queue ran concurrently; the limit is 2", got)
		}
	}},
	{"no more tasks start in any time as long as the period of a Rate than it says, and with a Burst on average", func(t *testing.T, f *fixture) {
		const period = 500 * time.Millisecond
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		ran := make(chan string, 100)
		enqueueAll := func(name string, limit falldue.Limit, keys ...string) {
			k := falldue.NewKind[string](name, falldue.KindConfig{Limits: []falldue.Limit{limit}})
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error { ran <- task.Kind; return nil })
			for _, key := range keys {
				enqueueSame(t, q, k, 3, key, falldue.EnqueueOptions{Key: key})
			}
		}
		enqueueAll("window", falldue.Rate(2, period), "")
		enqueueAll("bucket", falldue.Rate(1, period).Burst(2), "")
		enqueueAll("hourly", falldue.Rate(2, time.Hour).PerKey(), "a", "b", "")
		enqueueAll("hourly-burst", falldue.Rate(1, time.Hour).Burst(2), "a", "b")
		startWorker(t, q)
		want := map[string]int{"window": 3, "bucket": 3, "hourly": 2 + 2 + 3, "hourly-burst": 2}
		for range 3 + 3 + 7 + 2 {
			want[receive(t, ran, "all tasks that the rates allow")]--
		}
		for name, left := range want {
			if left != 0 {
				t.Errorf("of kind %s %d more tasks should have run", name, left)
			}
		}
		// The third task starts a period after the first one. That one's claim takes a part of it.
		for _, name := range []string{"window", "bucket"} {
			var times []time.Time
			for _, task := range tasksOf(t, q, name) {
				times = append(times, task.AttemptedAt)
			}
			slices.SortFunc(times, time.Time.Compare)
			if apart := times[2].Sub(times[0]); apart < period/2 {
				t.Errorf("the third task of kind %s started %v after the first one, want %v", name, apart, period)
			}
		}
		for name, left := range map[string]int{"hourly": 2, "hourly-burst": 4} {
			page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: name, Phase: falldue.PhaseLimited})
			if err != nil || len(page.Tasks) != left {
				t.Errorf("of kind %s %d tasks wait for the limit (error %v), want %d", name, len(page.Tasks), err, left)
			}
			for _, task := range page.Tasks {
				if task.Fence != 0 {
					t.Errorf("a task that waits for the limit is %+v", task)
				}
			}
		}
	}},
	{"tasks of a key with InOrder run one after the other as they were enqueued, though they fail, are snoozed or lose their worker", func(t *testing.T, f *fixture) {
		const keys, each = 2, 6
		type step struct {
			Key string
			N   int
		}
		k := falldue.NewKind[step]("sequence", falldue.KindConfig{Policy: backoff.Constant(time.Millisecond), Limits: []falldue.Limit{falldue.InOrder()}})
		var mu sync.Mutex
		effects := map[string][]int{}
		hanging, ran := make(chan struct{}, keys), make(chan struct{}, 10*keys*each)
		first := f.queueOn(t, f.open(t), falldue.Config{Concurrency: keys, ShutdownTimeout: -1})
		falldue.Handle(first, k, func(ctx context.Context, _ falldue.Task[step]) error {
			hanging <- struct{}{}
			<-ctx.Done()
			return errFlaky
		})
		runs := newLimitedRuns()
		others := []*falldue.Queue{f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{})}
		for _, q := range others {
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[step]) error {
				g := runs.gauge(task.Args.Key)
				g.enter()
				defer g.leave()
				switch {
				case task.Attempt == 1 && task.Args.N == 2:
					return errFlaky
				case task.Fence == 1 && task.Args.N == 3:
					return falldue.Snooze(time.Millisecond)
				}
				mu.Lock()
				effects[task.Args.Key] = append(effects[task.Args.Key], task.Args.N)
				mu.Unlock()
				ran <- struct{}{}
				return nil
			})
		}
		for i := range keys {
			key := fmt.Sprintf("customer %d", i)
			opts := falldue.EnqueueOptions{Key: key}
			enqueue(t, first, k, step{key, 0}, opts)
			var rest []step
			for n := 1; n < each; n++ {
				rest = append(rest, step{key, n})
			}
			if _, err := k.EnqueueMany(t.Context(), first, rest, opts); err != nil {
				t.Fatal(err)
			}
		}
		startWorker(t, first)
		for range keys {
			receive(t, hanging, "the first task of each key")
		}
		f.endLeases(t, "kind = 'sequence'")
		for _, q := range others {
			startWorker(t, q)
		}
		for range keys * each {
			receive(t, ran, "all tasks")
		}
		mu.Lock()
		defer mu.Unlock()
		for key, got := range effects {
			if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
				t.Errorf("the tasks of %s ran in the order %v", key, got)
			}
			if most := runs.gauge(key).most.Load(); most != 1 {
				t.Errorf("%d tasks of %s ran concurrently", most, key)
			}
		}
	}},
	{"after a dead task of a sequence the next one runs, or with HaltOnDeath none until that one is done", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		ran, ids := make(chan string, 10), map[string]int64{}
		for name, order := range map[string]falldue.Limit{"on": falldue.InOrder(), "halt": falldue.InOrder().HaltOnDeath()} {
			k := falldue.NewKind[string](name, falldue.KindConfig{Limits: []falldue.Limit{order}})
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
				if task.Args == "first" && task.Fence == 1 {
					return falldue.Discard(errors.New("hopeless"))
				}
				ran <- task.Kind + " " + task.Args
				return nil
			})
			list, err := k.EnqueueMany(t.Context(), q, []string{"first", "second"}, falldue.EnqueueOptions{Key: "key"})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = list[0].ID
		}
		startWorker(t, q)
		if got := receive(t, ran, "the task after a dead one"); got != "on second" {
			t.Errorf("%s ran", got)
		}
		waitForState(t, q, ids["halt"], falldue.StateDead)
		if err := q.Retry(t.Context(), ids["halt"]); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"halt first", "halt second"} {
			if got := receive(t, ran, want); got != want {
				t.Errorf("%s ran, want %s", got, want)
			}
		}
	}},
	{"a dead task that halts a sequence cannot be cancelled; the next one runs when it is deleted, or when its retention ends", func(t *testing.T, f *fixture) {
		q, ran, ids := f.queue(t, falldue.Config{}), make(chan string, 10), map[string]int64{}
		for name, retention := range map[string]time.Duration{"kept": 0, "passing": time.Second} {
			k := falldue.NewKind[bool](name, falldue.KindConfig{DeadRetention: retention, Limits: []falldue.Limit{falldue.InOrder().HaltOnDeath()}})
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
				if task.Args {
					return falldue.Discard(errors.New("hopeless"))
				}
				ran <- task.Kind
				return nil
			})
			list, err := k.EnqueueMany(t.Context(), q, []bool{true, false}, falldue.EnqueueOptions{Key: "key"})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = list[0].ID
		}
		startWorker(t, q)
		if got := receive(t, ran, "the task after the one whose retention has ended"); got != "passing" {
			t.Errorf("a task of kind %s ran", got)
		}
		waitForState(t, q, ids["kept"], falldue.StateDead)
		if err := q.Cancel(t.Context(), ids["kept"]); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("cancelling the dead task: error %v, want ErrWrongState", err)
		}
		if err := q.Delete(t.Context(), ids["kept"]); err != nil {
			t.Fatal(err)
		}
		receive(t, ran, "the task after the one that was deleted")
	}},
	{"tasks without a limit run while a sequence waits for a task that is to run again in an hour", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		inOrder := falldue.NewKind[string]("sequence", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}})
		plain := falldue.NewKind[string]("plain", falldue.KindConfig{})
		ran := make(chan string, 3)
		falldue.Handle(q, inOrder, func(_ context.Context, _ falldue.Task[string]) error {
			return falldue.RetryAfter(time.Hour, errFlaky)
		})
		falldue.Handle(q, plain, func(_ context.Context, task falldue.Task[string]) error {
			ran <- task.Args
			return nil
		})
		receipts, err := inOrder.EnqueueMany(t.Context(), q, []string{"first", "second"}, falldue.EnqueueOptions{Key: "key"})
		if err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		waitFor(t, q, receipts[0].ID, "waiting again", func(i falldue.TaskInfo) bool { return i.Attempts == 1 && i.ClaimedBy == "" })
		for _, args := range []string{"a", "b"} { // the claim that finds the sequence waiting may come after the first
			enqueue(t, q, plain, args)
			if got := receive(t, ran, "a task without a limit"); got != args {
				t.Errorf("%s ran, want %s", got, args)
			}
		}
		if info := readTask(t, q, receipts[1].ID); info.Fence != 0 {
			t.Errorf("the second one of the sequence was claimed: %+v", info)
		}
	}},
	{"a run's wait for limits and for its sequence is apart from its wait for a worker", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		for name, limit := range map[string]falldue.Limit{"order": falldue.InOrder(), "one": falldue.AtMost(1)} {
			k := falldue.NewKind[string](name, falldue.KindConfig{Limits: []falldue.Limit{limit}})
			runs := make(chan falldue.RunInfo, 2)
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
				runs <- task.RunInfo
				return nil
			})
			options := falldue.EnqueueOptions{Key: "key", RunAt: time.Now().Add(-time.Minute)}
			if _, err := k.EnqueueMany(t.Context(), q, []string{"first", "second"}, options); err != nil {
				t.Fatal(err)
			}
			defer func() {
				first, second := receive(t, runs, "the first task"), receive(t, runs, "the second task")
				if waited := first.ReadyAt.Sub(first.DueAt); waited != 0 || first.StartedAt.Sub(first.ReadyAt) < time.Minute {
					t.Errorf("%s: the first run has waited %v for limits, want 0 and a minute for a worker: %+v", name, waited, first)
				}
				if waited := second.ReadyAt.Sub(second.DueAt); waited < time.Minute || second.StartedAt.Before(second.ReadyAt) {
					t.Errorf("%s: the second run has waited %v for limits, want a minute that ends before it began: %+v", name, waited, second)
				}
			}()
		}
		startWorker(t, q)
	}},
	{"with a limit for each key, a task starts immediately while 2,000 of another key wait", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{ShutdownTimeout: -1})
		k := falldue.NewKind[string]("charge", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(2).PerKey()}})
		runs := newLimitedRuns()
		falldue.Handle(q, k, runs.handle)
		enqueueSame(t, q, k, waitingOfAnother, "a", falldue.EnqueueOptions{Key: "a"})
		startWorker(t, q)
		for range 2 {
			receive(t, runs.started, "the tasks that the limit allows")
		}
		enqueue(t, q, k, "b", falldue.EnqueueOptions{Key: "b"})
		if got := receive(t, runs.started, "the task of the other key, while none ends"); got != "b" {
			t.Errorf("a third task of key %s started", got)
		}
	}},
	{"keys of a kind take turns: a task is among the next to start while 2,000 of another key wait", func(t *testing.T, f *fixture) {
		for name, limits := range map[string][]falldue.Limit{"no-limit": nil, "limit": {falldue.AtMost(2)}} {
			// Two handlers, and nothing claimed ahead for them.
			q := f.queueOn(t, f.db, falldue.Config{Queues: map[string]falldue.QueueConfig{name: {Concurrency: 2}}, MaxPrefetch: -1, ShutdownTimeout: -1})
			k := falldue.NewKind[string]("charge", falldue.KindConfig{Queue: name, Limits: limits})
			runs := newLimitedRuns()
			falldue.Handle(q, k, runs.handle)
			enqueueSame(t, q, k, waitingOfAnother, "a", falldue.EnqueueOptions{Key: "a"})
			stop := startWorker(t, q)
			for range 2 {
				receive(t, runs.started, "the tasks for which there are handlers")
			}
			enqueue(t, q, k, "b", falldue.EnqueueOptions{Key: "b"})
			var next []string
			for range 3 {
				runs.release <- struct{}{}
				next = append(next, receive(t, runs.started, "the next task"))
			}
			if !slices.Contains(next, "b") {
				t.Errorf("with %s, the next tasks are of the keys %v; want one of key b", name, next)
			}
			stop()
		}
	}},
}

// waitingOfAnother is how many tasks of a key wait while one of another key comes.
const waitingOfAnother = 2000
