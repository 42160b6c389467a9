package systemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestOthersDefineOperatorsAndFunctions: on PostgreSQL somebody has defined operators and
// functions in a schema of the search path, which raise an error. None of them is called
// in the life of tasks.
func TestOthersDefineOperatorsAndFunctions(t *testing.T) {
	t.Parallel()
	for driver, setting := range testdb.InOneStep {
		t.Run(driver, func(t *testing.T) { checkTraps(t, driver, "", false) })
		t.Run(driver+" as behind a pooler", func(t *testing.T) { checkTraps(t, driver, "&"+setting, true) })
	}
}

func checkTraps(t *testing.T, driver, setting string, pooled bool) {
	t.Parallel()
	db, err := testdb.OpenDSN(driver, testdb.DSN(t, testdb.Postgres)+setting)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	testdb.SetTraps(t, db, `version( concat( max( min( count( pg_backend_pid( pg_postmaster_start_time( date_part( unnest( power( floor(
				pg_try_advisory_lock( pg_advisory_lock( pg_advisory_unlock( pg_try_advisory_xact_lock( generate_series( nextval( pg_get_serial_sequence(
				pg_notify( hashtext( to_regclass( current_database( current_setting( statement_timestamp( transaction_timestamp( now( clock_timestamp(`)
	q, err := falldue.New(db, falldue.Config{DoneRetention: time.Millisecond, Notifications: falldue.Notifications{Mode: falldue.NotifyInTx}, TransactionPooling: pooled})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := db.Get(&n, "select count(*)::int from pg_catalog.pg_depend where refclassid in ('pg_catalog.pg_proc'::regclass::oid, 'pg_catalog.pg_operator'::regclass::oid) and classid = 'pg_catalog.pg_class'::regclass::oid"); err != nil || n > 0 {
		t.Errorf("%d parts of the tables use what somebody else has defined (error %v)", n, err)
	}
	own := backoff.ParseDeferred("delay min(1ms * n^2, 1s)")
	kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: own})
	handled := 0
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
		switch {
		case task.Attempt == 1 && task.Args%3 == 1:
			return errors.New("again")
		case task.Args%3 == 2:
			return falldue.Discard(errors.New("no"))
		case task.Args == 3:
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			return errors.Join(task.DoneTx(ctx, tx), tx.Commit())
		case task.Args == 6 && handled == 0:
			handled++ // only this task's handler writes it
			return falldue.Snooze(time.Millisecond)
		}
		return nil
	})
	args := make([]int, 600)
	for i := range args {
		args[i] = i
	}
	if _, err := kind.EnqueueMany(t.Context(), q, args); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.EnqueueMany(t.Context(), q, []int{1, 2, 3}, falldue.EnqueueOptions{Policy: own, Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	tx := db.MustBegin()
	receipt, err := kind.EnqueueTx(t.Context(), q, tx, 2, falldue.EnqueueOptions{RunAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	stop := runUntil(t, q)
	defer stop()
	waitFor(t, "one task to be dead", func() bool { return info(t, q, receipt.ID).State == falldue.StateDead })
	if err := q.Retry(t.Context(), receipt.ID); err != nil {
		t.Error(err)
	}
	waitFor(t, "the others to be done and deleted", func() bool {
		counts, err := ops.New(q).Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counts {
			if c.State != falldue.StateDead {
				return false
			}
		}
		return len(counts) > 0
	})
	if _, err := q.Attempts(t.Context(), receipt.ID); err != nil {
		t.Error(err)
	}
}
