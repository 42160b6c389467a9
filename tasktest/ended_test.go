package tasktest_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/steps"
	"github.com/falldue/falldue/tasktest"

	"github.com/jmoiron/sqlx"
)

// TestDoneTasksByHandAreLikeStoredOnes: after DoneTx, a handler's calls return the same errors with a task by hand as in
// a worker, and the next attempt starts without the ends of the previous one.
func TestDoneTasksByHandAreLikeStoredOnes(t *testing.T) {
	kind := falldue.NewKind[int]("ended", falldue.KindConfig{})
	// ending returns a handler that passes the errors of its calls to note.
	ending := func(db *sqlx.DB, note func(call string, err error)) func(context.Context, falldue.Task[int]) error {
		return func(ctx context.Context, task falldue.Task[int]) error {
			step := func(name string) {
				_, err := steps.Do(ctx, task, name, func(context.Context) (int, error) { return 1, nil })
				note("step "+name, err)
			}
			step("before")
			_, err := steps.DoTx(ctx, task, "within", func(ctx context.Context, record func(falldue.Tx, int) error) error {
				tx, err := db.BeginTxx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				note("record", record(tx, 1))
				note("DoneTx", task.DoneTx(ctx, tx))
				note("second DoneTx", task.DoneTx(ctx, tx))
				note("record after DoneTx", record(tx, 2))
				return tx.Commit()
			})
			note("step within", err)
			step("after")
			return nil
		}
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := newQueue(t, db, falldue.Config{})
		want := map[string]error{}
		falldue.Handle(q, kind, ending(db, func(call string, err error) { want[call] = err }))
		enqueue(t, q, kind, 1)
		if ran := tasktest.RunOne(t, q); ran.State != falldue.StateDone {
			t.Fatalf("the task in the database ran as %+v", ran)
		}
		task, _ := tasktest.NewTaskOf(kind, 1, falldue.Config{})
		calls := 0
		if err := ending(db, func(call string, err error) {
			calls++
			if lost := errors.Is(want[call], falldue.ErrLeaseLost); lost != errors.Is(err, falldue.ErrLeaseLost) || !lost && (err != nil || want[call] != nil) {
				t.Errorf("%s: error %v, and in a worker %v", call, err, want[call])
			}
		})(t.Context(), task); err != nil || calls != len(want) {
			t.Errorf("the handler made %d calls (error %v), in a worker %d", calls, err, len(want))
		}
	})
}

// TestNextAttemptsBeginAnew: what ended an attempt does not end the next one, and a transaction that begins again after a
// rollback can call DoneTx.
func TestNextAttemptsBeginAnew(t *testing.T) {
	task, record := tasktest.NewTask(1)
	for _, err := range []error{task.SetResult(1), task.DoneTx(t.Context(), &sql.Tx{}), task.DoneTx(t.Context(), &sql.Tx{})} {
		if err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if task = tasktest.NextAttempt(task); record.DoneTx() || record.Result() != nil {
			t.Errorf("DoneTx is %t in the next attempt, and the result is %s", record.DoneTx(), record.Result())
		}
		if _, err := steps.Do(t.Context(), task, "first", func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Errorf("a step in the next attempt: %v", err)
		}
		if err := task.DoneTx(t.Context(), &sql.Tx{}); err != nil {
			t.Errorf("DoneTx in the next attempt: %v", err)
		}
	}
}
