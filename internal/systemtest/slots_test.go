package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/claim"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// takeSlot takes a claim slot until the test ends.
func takeSlot(t *testing.T, db *sqlx.DB, s *store.Store, slot int64) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	got := 0
	if s.Server().Caps.UpdateReturning {
		err = tx.QueryRowContext(t.Context(), "select case when pg_try_advisory_xact_lock($1) or pg_try_advisory_xact_lock($1 + 1) then 1 else 0 end", slot).Scan(&got)
	} else {
		stmt := statements.TakeClaimSlot(s.Server())
		err = tx.QueryRowContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": slot}, nil)...).Scan(&got)
	}
	if err != nil || got == 0 {
		t.Fatalf("no slot is free (error %v)", err)
	}
}

// TestClaimsGoOnWithoutASlot: the processes that hold the slots may be suspended. Others
// continue until all their handlers run.
func TestClaimsGoOnWithoutASlot(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		const tasks = 2 * store.MaxBatch
		q, err := falldue.New(db, falldue.Config{Concurrency: tasks})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := hooks.StoreOf(q)
		k := falldue.NewKind[int]("slot", falldue.KindConfig{})
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, tasks)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
		defer stop()
		begun, end := make(chan struct{}, tasks), make(chan struct{})
		falldue.Handle(q, k, func(context.Context, falldue.Task[int]) error { begun <- struct{}{}; <-end; return nil })
		if s.Server().Caps.SkipLocked {
			slot := s.SlotName(falldue.DefaultQueue, []string{k.Name()})
			takeSlot(t, db, s, slot)
			takeSlot(t, db, s, slot)
		}
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- q.Run(ctx) }()
		for i := range tasks {
			select {
			case <-begun:
			case <-ctx.Done():
				t.Fatalf("%d of %d tasks run", i, tasks)
			}
		}
		if took := time.Since(start); s.Server().Caps.SkipLocked && took < 2*claim.SlotPatience {
			t.Errorf("the second large claim took no slot: all tasks run after %v", took)
		}
		close(end)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
