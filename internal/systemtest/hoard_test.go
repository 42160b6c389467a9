package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// greed is a worker of ten handlers with a backlog of slow tasks, which claimed far ahead
// while the tasks before were fast.
type greed struct {
	kind  falldue.Kind[bool]
	open  func(falldue.Config) *falldue.Queue // returns another queue on the database
	begun chan struct{}                       // signalled by each slow task that starts
	end   chan struct{}                       // ends slow handlers when it is closed
}

const (
	greedyHandlers = 10
	slowTasks      = 300
)

// newGreed starts the worker. slow are the options of the slow tasks.
func newGreed(t *testing.T, engine string, cfg falldue.KindConfig, slow falldue.EnqueueOptions) (*greed, *falldue.Queue) {
	t.Helper()
	db := testdb.Open(t, engine)
	g := &greed{kind: falldue.NewKind[bool]("greedy", cfg), begun: make(chan struct{}, slowTasks), end: make(chan struct{})}
	g.open = func(cfg falldue.Config) *falldue.Queue {
		q, err := falldue.New(db, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := g.open(falldue.Config{Concurrency: greedyHandlers})
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const fast = 2000
	returned := make(chan struct{}, fast)
	falldue.Handle(q, g.kind, func(_ context.Context, task falldue.Task[bool]) error {
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

func (g *greed) enqueue(t *testing.T, q *falldue.Queue, args []bool, opts ...falldue.EnqueueOptions) {
	t.Helper()
	if _, err := g.kind.EnqueueMany(t.Context(), q, args, opts...); err != nil {
		t.Fatal(err)
	}
}

// run runs q until the test ends.
func (g *greed) run(t *testing.T, q *falldue.Queue) {
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
func claimedTasks(t *testing.T, q *falldue.Queue) (claimed, attempts int) {
	t.Helper()
	list, err := hooks.StoreOf(q).Tasks(t.Context(), store.Filter{Limit: 10_000})
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
		g, _ := newGreed(t, engine, falldue.KindConfig{}, falldue.EnqueueOptions{})
		idle := g.open(falldue.Config{Concurrency: slowTasks, PollInterval: 50 * time.Millisecond})
		falldue.Handle(idle, g.kind, func(_ context.Context, task falldue.Task[bool]) error {
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
		opts   falldue.EnqueueOptions
	}{
		"by policy":       {backoff.Constant(0).WithMaxAttempts(1), falldue.EnqueueOptions{}},
		"by task":         {backoff.Constant(0), falldue.EnqueueOptions{MaxAttempts: 1}},
		"by its own rule": {backoff.Constant(0), falldue.EnqueueOptions{Policy: backoff.Constant(0).WithMaxAttempts(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, engine string) {
				_, q := newGreed(t, engine, falldue.KindConfig{Policy: c.policy}, c.opts)
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

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
