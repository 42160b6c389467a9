package falldue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// greed is a worker of ten handlers with a backlog of slow tasks, which claimed far ahead
// while the tasks before were fast.
type greed struct {
	kind  Kind[bool]
	open  func(Config) *Queue // returns another queue on the database
	begun chan struct{}       // signalled by each slow task that starts
	end   chan struct{}       // ends slow handlers when it is closed
}

const (
	greedyHandlers = 10
	slowTasks      = 300
)

// newGreed starts the worker. slow are the options of the slow tasks.
func newGreed(t *testing.T, engine string, cfg KindConfig, slow EnqueueOptions) (*greed, *Queue) {
	t.Helper()
	db := testdb.Open(t, engine)
	g := &greed{kind: NewKind[bool]("greedy", cfg), begun: make(chan struct{}, slowTasks), end: make(chan struct{})}
	g.open = func(cfg Config) *Queue {
		q, err := New(db, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := g.open(Config{Concurrency: greedyHandlers})
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const fast = 2000
	returned := make(chan struct{}, fast)
	Handle(q, g.kind, func(_ context.Context, task Task[bool]) error {
		if task.Args {
			g.begun <- struct{}{}
			<-g.end
		} else {
			returned <- struct{}{}
		}
		return nil
	})
	g.enqueue(t, q, make([]bool, fast))
	g.run(t, q)
	for range fast {
		wait(t, returned, "a fast task")
	}
	args := make([]bool, slowTasks)
	for i := range args {
		args[i] = true
	}
	g.enqueue(t, q, args, slow)
	for range greedyHandlers {
		wait(t, g.begun, "a slow task to start")
	}
	return g, q
}

func (g *greed) enqueue(t *testing.T, q *Queue, args []bool, opts ...EnqueueOptions) {
	t.Helper()
	if _, err := g.kind.EnqueueMany(t.Context(), q, args, opts...); err != nil {
		t.Fatal(err)
	}
}

// run runs q until the test ends.
func (g *greed) run(t *testing.T, q *Queue) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	t.Cleanup(func() {
		select {
		case <-g.end:
		default:
			close(g.end)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// claimedTasks returns the number of tasks that are claimed, and the most attempts that a task
// that is not claimed has used up.
func claimedTasks(t *testing.T, q *Queue) (claimed, attempts int) {
	t.Helper()
	list, err := q.store.Tasks(t.Context(), store.Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range list {
		if task.ClaimedBy != "" {
			claimed++
		} else {
			attempts = max(attempts, task.Attempts)
		}
	}
	return claimed, attempts
}

// TestTasksAreNotHoarded: a worker that claimed slow tasks ahead gives them back, so that
// an idle worker runs them.
func TestTasksAreNotHoarded(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		g, _ := newGreed(t, engine, KindConfig{}, EnqueueOptions{})
		idle := g.open(Config{Concurrency: slowTasks, PollInterval: 50 * time.Millisecond})
		Handle(idle, g.kind, func(_ context.Context, task Task[bool]) error {
			if task.Attempt != 1 {
				t.Errorf("a task that was given back runs as attempt %d", task.Attempt)
			}
			g.begun <- struct{}{}
			<-g.end
			return nil
		})
		g.run(t, idle)
		for i := range slowTasks - greedyHandlers {
			select {
			case <-g.begun:
			case <-time.After(testdb.Patience):
				claimed, _ := claimedTasks(t, idle)
				t.Fatalf("%d of %d tasks have started, %d are claimed", greedyHandlers+i, slowTasks, claimed)
			}
		}
	})
}

// TestLastAttemptsAreNotClaimedAhead: a worker that dies uses up the attempts of the tasks
// that it has claimed. It has not claimed a task with one attempt whose handler has not
// started.
func TestLastAttemptsAreNotClaimedAhead(t *testing.T) {
	for name, c := range map[string]struct {
		policy backoff.Policy
		opts   EnqueueOptions
	}{
		"by policy":       {backoff.Constant(0).WithMaxAttempts(1), EnqueueOptions{}},
		"by task":         {backoff.Constant(0), EnqueueOptions{MaxAttempts: 1}},
		"by its own rule": {backoff.Constant(0), EnqueueOptions{Policy: backoff.Constant(0).WithMaxAttempts(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, engine string) {
				_, q := newGreed(t, engine, KindConfig{Policy: c.policy}, c.opts)
				deadline := time.Now().Add(testdb.Patience)
				for {
					claimed, attempts := claimedTasks(t, q)
					if claimed == greedyHandlers && attempts == 0 {
						return
					}
					if claimed < greedyHandlers || time.Now().After(deadline) {
						t.Fatalf("%d are claimed, want %d; the others have used up to %d attempts, want 0", claimed, greedyHandlers, attempts)
					}
				}
			})
		})
	}
}

func TestHoardingIsConfigured(t *testing.T) {
	t.Parallel()
	cfg := Config{Queues: map[string]QueueConfig{"a": {}, "b": {MaxPrefetch: 7}}, MaxPrefetch: -1}.withDefaults()
	if a, b := cfg.Queues["a"].MaxPrefetch, cfg.Queues["b"].MaxPrefetch; a != -1 || b != 7 {
		t.Errorf("MaxPrefetch is %d and %d, want -1 and 7", a, b)
	}
	if n := (Config{}).withDefaults().Queues[DefaultQueue].MaxPrefetch; n != run.MaxPrefetch {
		t.Errorf("MaxPrefetch is %d by default, want %d", n, run.MaxPrefetch)
	}
	_, err := New(testdb.Open(t, testdb.SQLite), Config{MaxPrefetch: run.MaxPrefetch + 1})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "MaxPrefetch 1001") {
		t.Errorf("MaxPrefetch 1001: %v, want ErrInvalid", err)
	}
	if err := NewKind[int]("k", KindConfig{ImmediateLostRetries: -1}).err; !errors.Is(err, ErrInvalid) {
		t.Errorf("ImmediateLostRetries -1: %v, want ErrInvalid", err)
	}
}

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
