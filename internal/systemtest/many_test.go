package systemtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// amounts are how many of everything there are.
type amounts struct{ keys, kinds, queues, schedules, policies, depth, limit, payload int }

// howMany returns amounts that take seconds, or with FALLDUE_TEST_ALL=1 amounts that take minutes.
func howMany() amounts {
	if all() {
		return amounts{keys: 100_000, kinds: 2000, queues: 500, schedules: 1000, policies: 100_000, depth: 1000, limit: 1000, payload: 60 << 20}
	}
	return amounts{keys: 2500, kinds: 500, queues: 100, schedules: 200, policies: 500, depth: 50, limit: 1000, payload: 8 << 20}
}

// all reports whether tests that make up their cases try all of them.
func all() bool { return os.Getenv("FALLDUE_TEST_ALL") != "" }

// TestManyOfEverything: a database has many keys, kinds, queues, schedules and policies, a long chain, and a limit with many
// permits. A plain task starts nevertheless, the chain ends, and an operator's calls list the waiting tasks.
func TestManyOfEverything(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db, ctx, many := testdb.Open(t, engine), t.Context(), howMany()
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{
			Queues: map[string]falldue.QueueConfig{"default": {}, "many:*": {}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			MaxPayload: 64 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("long", many.payload/4)
		for hooks.StoreOf(q).CheckSize(len(long)+2) != nil { // and its quotes
			long = long[:len(long)/2]
		}
		ran := make(chan string, 100)
		handle := func(name string, cfg falldue.KindConfig) falldue.Kind[string] {
			k := falldue.NewKind[string](name, cfg)
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
				if task.Args != "" {
					ran <- name + " " + task.Args[:min(len(task.Args), 10)]
				}
				return nil
			})
			return k
		}
		plain, linked, limited := handle("plain", falldue.KindConfig{}), handle("linked", falldue.KindConfig{}), handle("limited", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(many.limit).PerKey(), falldue.InOrder()}})
		hour := falldue.EnqueueOptions{Delay: time.Hour}
		enqueue := func(tasks ...falldue.EnqueueParams) {
			t.Helper()
			if _, err := q.EnqueueMany(ctx, tasks...); err != nil {
				t.Fatal(err)
			}
		}
		var tasks []falldue.EnqueueParams
		for i := range many.kinds {
			k := handle(fmt.Sprint("kind", i), falldue.KindConfig{Policy: backoff.Constant(time.Duration(i+1) * time.Second)})
			o := hour
			o.Queue = fmt.Sprint("many:", i%many.queues)
			tasks = append(tasks, k.Params("", o))
		}
		for i := range many.keys {
			o := falldue.EnqueueOptions{Key: fmt.Sprint("key", i), Delay: time.Hour}
			if i%2 == 0 {
				o.Delay = 0
			}
			tasks = append(tasks, limited.Params("", o))
		}
		for i := range many.policies {
			o := hour
			o.Policy = backoff.Constant(time.Duration(i+1) * time.Minute)
			tasks = append(tasks, plain.Params("", o))
		}
		enqueue(tasks...)
		chain := flow.Chain(linked.Params("link"))
		for range many.depth - 2 {
			chain = chain.Then(linked.Params("link"))
		}
		if _, err := chain.Then(linked.Params("end")).Enqueue(ctx, q); err != nil {
			t.Fatal(err)
		}
		var schedules []periodic.Schedule
		for i := range many.schedules {
			schedules = append(schedules, periodic.Schedule{Name: fmt.Sprint("schedule", i), Spec: "@every 1h", Task: plain.Params("")})
		}
		scheduler, err := periodic.New(q, schedules...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheduler.Tick(ctx); err != nil {
			t.Fatal(err)
		}
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- q.Run(run) }()
		enqueue(plain.Params("a plain task"), plain.Params(long), limited.Params("a new key", falldue.EnqueueOptions{Key: "new"}))
		waiting := map[string]bool{"plain a plain ta": true, "plain longlonglo": true, "limited a new key": true, "linked end": true}
		for len(waiting) > 0 {
			select {
			case name := <-ran:
				delete(waiting, name)
			case err := <-ended:
				t.Fatal(err)
			case <-time.After(testdb.Patience): // since a task ran: a busy machine is slow to run the chain
				t.Fatalf("%v did not run\n%.5000s", waiting, log.String())
			}
		}
		o := ops.New(q)
		queues, err := o.Queues(ctx)
		if err != nil || len(queues) < many.queues {
			t.Errorf("%d queues, error %v", len(queues), err)
		}
		policies, err := o.OwnPolicies(ctx)
		if err != nil || len(policies) < many.policies {
			t.Errorf("%d policies of tasks, error %v", len(policies), err)
		}
		listed, err := periodic.List(ctx, q)
		if err != nil || len(listed) != many.schedules {
			t.Errorf("%d schedules, error %v", len(listed), err)
		}
		page, err := o.Tasks(ctx, ops.Filter{Key: "key17"})
		if err != nil || len(page.Tasks) != 1 {
			t.Errorf("%d tasks of a key, error %v", len(page.Tasks), err)
		}
		_, err = o.Diagnose(ctx)
		if err := errors.Join(err, func() error { _, err := o.Profile(ctx); return err }()); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestLongestTexts: a task's payload and its result may both be as long as the server allows, and longer ones are refused
// with their length and the server's limit.
func TestLongestTexts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{MaxPayload: 64 << 20, DoneRetention: falldue.Forever})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		const enough = 17 << 20 // where the server has no limit, or a greater one
		longest := sort.Search(enough, func(n int) bool { return hooks.StoreOf(q).CheckSize(n+1) != nil })
		text := strings.Repeat("x", longest-len(`""`))
		kind := falldue.NewKind[string]("k", falldue.KindConfig{})
		refused := func(what string, err error) {
			if longest < enough && (!errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes as stored: must be at most %d, because the server's ", longest+1, longest))) {
				t.Errorf("a %s that is too long: error %v", what, err)
			}
		}
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			refused("result", task.SetResult(task.Args+"x"))
			return task.SetResult(task.Args)
		})
		events := q.Subscribe()
		defer events.Close()
		task, err := kind.Enqueue(t.Context(), q, text)
		if err != nil {
			t.Fatal(err)
		}
		if longest < enough {
			_, err := kind.Enqueue(t.Context(), q, text+"x")
			refused("payload", err)
		}
		stop := runUntil(t, q)
		for ended := false; !ended; {
			select {
			case e := <-events.Events():
				ended = e.Outcome != ""
			case <-time.After(testdb.Patience):
				t.Fatal("the task has not ended")
			}
		}
		stop()
		if i := info(t, q, task.ID); i.State != falldue.StateDone || i.Attempts != 1 || len(i.Result) != longest {
			t.Errorf("the task is %s after %d attempts, with a result of %d of %d bytes", i.State, i.Attempts, len(i.Result), longest)
		}
	})
}
