package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// eachQueue calls test with a queue on each engine.
func eachQueue(t *testing.T, test func(t *testing.T, q *falldue.Queue)) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) { test(t, newQueue(t, testdb.Open(t, engine))) })
}

// newQueue returns a queue whose tables have been made.
func newQueue(t *testing.T, db *sqlx.DB) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestNoAlarmWithoutADeath: a task that is to run at the first death is cancelled when those
// before it have ended well, or if there are none, of which none dies.
func TestNoAlarmWithoutADeath(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db)
		falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error { return nil })
		falldue.Handle(q, alert, func(context.Context, falldue.Task[string]) error {
			t.Error("the alarm went off")
			return nil
		})
		for _, pages := range [][]falldue.EnqueueParams{{renderPage.Params(1)}, nil} {
			ids, err := flow.Batch(pages...).Then(alert.Params(""), flow.AtFirstDeath()).Enqueue(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if pages != nil {
				tasktest.Drain(t, q)
			} else {
				clock.Advance(t, q, 0)
			}
			if info, err := q.Task(t.Context(), ids[len(pages)]); err != nil || info.State != falldue.StateCancelled {
				t.Errorf("the alarm of %d tasks is %s (error %v), want cancelled", len(pages), info.State, err)
			}
		}
	})
}

// TestNothingIsAddedBesideNoTask: a Task that is made as a literal has the id 0.
func TestNothingIsAddedBesideNoTask(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		if ids, err := flow.AddSibling(t.Context(), q, falldue.Task[int]{}.ID, renderPage.Params(1)); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("added %v (error %v)", ids, err)
		}
		tasktest.RequireNoneEnqueued(t, q, renderPage)
	})
}

// TestNothingIsAddedBesideATaskWhoseCallbackIsCancelled: nothing runs after it any more.
func TestNothingIsAddedBesideATaskWhoseCallbackIsCancelled(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		ids, err := flow.Batch(renderPage.Params(1), renderPage.Params(2)).Then(publish.Params(""), flow.CancelOnDeath()).Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := flow.AddSibling(t.Context(), q, ids[1], alert.Params("")); err != nil || len(list) != 1 {
			t.Errorf("before the death %v are added (error %v)", list, err)
		}
		if err := q.Cancel(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		if list, err := flow.AddSibling(t.Context(), q, ids[1], alert.Params("")); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("after the death %v are added (error %v)", list, err)
		}
		if n := len(tasktest.All(t, q, alert)); n != 1 {
			t.Errorf("%d tasks are stored, want 1", n)
		}
	})
}

// TestOnDeathOfATaskThatIsNotBlocked: a task that was cancelled does nothing at deaths, also
// before a worker has looked at it.
func TestOnDeathOfATaskThatIsNotBlocked(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		ids, err := flow.Chain(renderPage.Params(1), publish.Params("")).Enqueue(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if on, err := flow.OnDeathOf(t.Context(), q, ids[1]); err != nil || on != flow.StaysBlocked {
			t.Errorf("of a blocked task: %q (error %v)", on, err)
		}
		if err := q.Cancel(t.Context(), ids[1]); err != nil {
			t.Fatal(err)
		}
		if on, err := flow.OnDeathOf(t.Context(), q, ids[1]); err != nil || on != "" {
			t.Errorf("of a cancelled task: %q (error %v)", on, err)
		}
	})
}

// TestTasksOfAnotherFlowAreRefused, also where this flow has a task with the same index. Nothing
// is stored.
func TestTasksOfAnotherFlowAreRefused(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		var f, other flow.Flow
		f.Add(renderPage.Params(1))
		f.Add(publish.Params(""), flow.After(other.Add(renderPage.Params(2))))
		f.Add(alert.Params(""), flow.After(flow.Node{}))
		ids, err := f.Enqueue(t.Context(), q)
		if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), "task 1, "+publish.Name()+", runs after a task of another flow") {
			t.Errorf("stored %v (error %v), want ErrInvalid of task 1", ids, err)
		}
		tasktest.RequireNoneEnqueued(t, q, renderPage)
	})
}

// TestTwoOptionsForDeathsAreRefused, also if both are the same.
func TestTwoOptionsForDeathsAreRefused(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		for _, opts := range [][]flow.Option{{flow.RunAnyway(), flow.CancelOnDeath()}, {flow.AtFirstDeath(), flow.AtFirstDeath()}} {
			ids, err := flow.Batch(renderPage.Params(1)).Then(publish.Params(""), opts...).Enqueue(t.Context(), q)
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), "task 1, "+publish.Name()+", has 2 options for failed dependencies") {
				t.Errorf("stored %v (error %v), want ErrInvalid of task 1", ids, err)
			}
		}
	})
}

// TestCountsOfATaskThatIsNotThere are an error, and those of a task that runs after nothing are zero.
func TestCountsOfATaskThatIsNotThere(t *testing.T) {
	eachQueue(t, func(t *testing.T, q *falldue.Queue) {
		receipt, err := renderPage.Enqueue(t.Context(), q, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := flow.CountsOf(t.Context(), q, receipt.ID); err != nil || c != (flow.Counts{}) {
			t.Errorf("of a task that runs after nothing: %+v (error %v)", c, err)
		}
		if c, err := flow.CountsOf(t.Context(), q, receipt.ID+1); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("of no task: %+v (error %v), want ErrNotFound", c, err)
		}
	})
}
