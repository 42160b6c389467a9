package periodic_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// TestMiddlewareOfATickThatIsTaken: in a process that is late next returns ErrTaken, and
// middleware that stores nothing and says nothing is an error.
func TestMiddlewareOfATickThatIsTaken(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		db, other := open(t, engine, dsn), open(t, engine, dsn)
		clock := tasktest.NewClock(t, db)
		tasktest.NewClock(t, other)
		q, late := newQueue(t, db, falldue.Config{}), newQueue(t, other, falldue.Config{})
		schedule := periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("r")}
		first, second := newScheduler(t, q, schedule), newScheduler(t, late, schedule)
		var errs []error
		step := func() { tick(t, first) }
		store := true
		late.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				if !store {
					return make([]falldue.Receipt, len(tasks)), nil
				}
				step()
				receipts, err := next(ctx, tx, tasks)
				errs = append(errs, err)
				return receipts, err
			}
		})
		tick(t, first)
		clock.Jump(t, time.Hour)
		tick(t, second)
		wantReports(t, q, "a tick that another process takes", "r")
		if len(errs) != 1 || !errors.Is(errs[0], periodic.ErrTaken) {
			t.Errorf("middleware of the late process has seen %v", errs)
		}
		step = func() {}
		clock.Jump(t, time.Hour)
		tick(t, second)
		wantReports(t, q, "a tick of the other process", "r", "r")
		store = false
		clock.Jump(t, time.Hour)
		if _, err := second.Tick(t.Context()); err == nil {
			t.Error("middleware that stores nothing and returns no error is not noticed")
		}
		wantReports(t, q, "a tick that is not stored", "r", "r")
	})
}

// TestATriggerDuringATick: a schedule without overlap is triggered after a tick has read that its
// last task is finished. The tick has no task then, and neither has any as long as that one waits.
func TestATriggerDuringATick(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		db, other := open(t, engine, dsn), open(t, engine, dsn)
		clock := tasktest.NewClock(t, db)
		tasktest.NewClock(t, other)
		q, control := newQueue(t, db, falldue.Config{}), newQueue(t, other, falldue.Config{})
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1h", NoOverlap: true, Task: report.Params("r")})
		tick(t, s)
		var errs []error
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				if _, err := periodic.Trigger(ctx, control, "r"); err != nil {
					return nil, err
				}
				receipts, err := next(ctx, tx, tasks)
				errs = append(errs, err)
				return receipts, err
			}
		})
		clock.Jump(t, time.Hour)
		tick(t, s)
		wantReports(t, q, "the tick beside a trigger", "r")
		tick(t, s)
		wantReports(t, q, "the same tick again, while the triggered task waits", "r")
		if len(errs) != 1 || !errors.Is(errs[0], periodic.ErrTaken) {
			t.Errorf("middleware of the tick has seen %v, want ErrTaken", errs)
		}
	})
}

// TestMiddlewareThatPanics in a tick: the tick fails and is tried again, and other schedules continue. In
// Run the process would end otherwise.
func TestMiddlewareThatPanics(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "bad", Spec: "@every 1h", Task: report.Params("bad")},
			periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("r")})
		panics := true
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				if args, _ := json.Marshal(tasks[0].Args()); panics && string(args) == `"bad"` {
					panic("a bug in middleware")
				}
				return next(ctx, tx, tasks)
			}
		})
		tick(t, s)
		clock.Jump(t, time.Hour)
		if _, err := s.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "schedule bad: panic: a bug in middleware\n") {
			t.Errorf("the tick whose middleware panics: error %v", err)
		}
		wantReports(t, q, "while middleware panics", "r")
		panics = false
		tick(t, s)
		wantReports(t, q, "when it panics no more", "r", "bad")
	})
}
