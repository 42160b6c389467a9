package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// TestLockedRowDelaysNoOtherTask: somebody locks the row of a running task. The leases
// of the other tasks are extended, and they are settled.
func TestLockedRowDelaysNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		if s, err := dialect.Probe(t.Context(), db); err != nil || !s.Caps.SkipLocked {
			t.Skipf("it cannot skip locked rows (error %v)", err)
		}
		for range 5 { // a machine that stalls for longer than a lease loses the others, too
			if lost := lostBesideALockedRow(t, db); len(lost) == 0 {
				return
			}
		}
		t.Error("other tasks have lost their leases in each of five runs")
	})
}

// lostBesideALockedRow runs five tasks for longer than a lease while the row of one of them is locked. It returns the others
// that have lost their leases.
func lostBesideALockedRow(t *testing.T, db *sqlx.DB) (others []int64) {
	t.Helper()
	const lease = 3 * time.Second // a busy machine may miss one heartbeat, but not two
	q, err := falldue.New(db, falldue.Config{Lease: lease, DoneRetention: time.Hour, ShutdownTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.Constant(0)})
	started, release, lost := make(chan struct{}, 20), make(chan struct{}), make(chan int64, 20)
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			lost <- task.ID
		}
		return nil
	})
	receipts, err := kind.EnqueueMany(t.Context(), q, make([]int, 5))
	if err != nil {
		t.Fatal(err)
	}
	stop := runUntil(t, q)
	defer stop()
	for range receipts {
		<-started
	}
	holder := db.MustBegin()
	defer func() { _ = holder.Rollback() }()
	holder.MustExec(db.Rebind("select id from falldue_tasks where id = ? for update"), receipts[2].ID)
	first := info(t, q, receipts[0].ID)
	waitFor(t, "the others' leases to be extended by more than their length", func() bool { return info(t, q, receipts[0].ID).UpdatedAt.Sub(first.UpdatedAt) > lease })
	close(release)
	for _, id := range []int64{receipts[0].ID, receipts[1].ID, receipts[3].ID, receipts[4].ID} {
		waitFor(t, "the others to be done", func() bool { return info(t, q, id).State == falldue.StateDone })
	}
	for len(lost) > 0 {
		if id := <-lost; id != receipts[2].ID {
			others = append(others, id)
		}
	}
	if err := holder.Rollback(); err != nil {
		t.Error(err)
	}
	waitFor(t, "the locked task to be done", func() bool { return info(t, q, receipts[2].ID).State == falldue.StateDone })
	return others
}
