package tasktest

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/ops"
)

// Ran is a task that [RunOne] or [Drain] has run.
type Ran struct {
	ID          int64
	Kind, Queue string
	// Attempt is the number of the attempt.
	Attempt int
	// State is the new state of the task: done, dead, open for a retry under its policy, or snoozed if the handler
	// returned Snooze, Again or RetryAfter. State is cancelled if another caller cancelled or deleted the task in the
	// meantime, or if the task expired because it had not started in time. State is "" if the lease was lost.
	State falldue.State
	// Err is the error that the handler returned, or nil. If the task was cancelled or lost, Err
	// is [falldue.ErrCancelled] or [falldue.ErrLeaseLost] instead, whatever the handler returned.
	Err error
}

// RunOne runs the task that is due first, in the goroutine of the test, as a worker would: it claims the task, runs its
// handler, and records the outcome. Config.Hooks and subscriptions get the same events as from a worker, and the context
// of the handler ends when the task is cancelled. RunOne searches the queues of q's configuration, for tasks of kinds that q
// handles and that are not paused. If no such task is due, RunOne fails the test and lists the waiting tasks. It also
// fails the test if the database returns an error.
//
// RunOne needs no running worker. If a worker is running, it may run the task first.
func RunOne(t testing.TB, q *falldue.Queue) Ran {
	t.Helper()
	ran, _ := runOne(t, q)
	if ran == nil {
		t.Fatalf("tasktest: no task is due that would run; %s", whatWaits(t, q))
	}
	return *ran
}

// maxDrain is the greatest number of tasks that Drain runs.
const maxDrain = 100_000

// queue is what this package uses of a *falldue.Queue, in addition to its store.
type queue interface {
	// RunOne runs the task that is due first. If no task is due, RunOne returns nil and the time until a
	// task can run. The time is negative if no task can run however long the test waits.
	RunOne(ctx context.Context) (ran *worker.Ran, next time.Duration, err error)
	// Handles returns the queues that RunOne looks into, and the kinds that it runs.
	Handles() (queues, kinds []string)
	CleanAndJudge(ctx context.Context) error
	// Tickers returns the functions that enqueue periodic tasks, see [periodic.Scheduler.Tick].
	Tickers() []func(context.Context) (next time.Duration, err error)
}

// Drain runs due tasks, as [RunOne] does, until no task is due, including tasks that handlers enqueue. Drain returns
// the tasks in the order in which they ran. Tasks that fall due later are not run. Drain fails the test after 100,000
// runs, since a task that is due again after each run would never let it end. Drain also fails the test if a task is
// due and q has no handlers.
func Drain(t testing.TB, q *falldue.Queue) []Ran {
	t.Helper()
	list, _ := drain(t, q)
	if _, kinds := hooks.Of[queue](q).Handles(); len(kinds) > 0 {
		return list
	}
	switch due, err := ops.New(q).Tasks(t.Context(), ops.Filter{Phase: falldue.PhaseDue}, ops.ListOptions{Limit: 1}); {
	case err != nil:
		t.Fatalf("tasktest: list the tasks that are due: %v", err)
	case len(due.Tasks) > 0:
		t.Fatalf("tasktest: task %d of kind %q is due, but the queue has no handlers: call Handle before Drain", due.Tasks[0].ID, due.Tasks[0].Kind)
	}
	return list
}

// requireQueue fails the test if q is nil.
func requireQueue(t testing.TB, q *falldue.Queue) {
	t.Helper()
	if q == nil {
		t.Fatal("tasktest: the *falldue.Queue is nil: pass a queue that falldue.New has returned")
	}
}

// drain is Drain, and returns how long it is until more can run, see [queue].
func drain(t testing.TB, q *falldue.Queue) (list []Ran, next time.Duration) {
	t.Helper()
	for len(list) < maxDrain {
		ran, next := runOne(t, q)
		if ran == nil {
			return list, next
		}
		list = append(list, *ran)
	}
	last := list[len(list)-1]
	t.Fatalf("tasktest: tasks are still due after %d runs; the last one was attempt %d of task %d of kind %q: %v", len(list), last.Attempt, last.ID, last.Kind, last.Err)
	return nil, 0
}

// runOne returns nil if no task is due, and how long it is until more can run.
func runOne(t testing.TB, q *falldue.Queue) (_ *Ran, next time.Duration) {
	t.Helper()
	requireQueue(t, q)
	if uses, offered := hooks.StoreOf(q).HasTestClock(); offered && !uses {
		t.Fatal(lateClock)
	}
	ran, next, err := hooks.Of[queue](q).RunOne(t.Context())
	if err != nil {
		t.Fatalf("tasktest: run a task: %v", err)
	}
	if ran == nil {
		return nil, next
	}
	return &Ran{ID: ran.ID, Kind: ran.Kind, Queue: ran.Queue, Attempt: ran.Attempt, State: falldue.State(ran.State), Err: ran.Err}, 0
}
