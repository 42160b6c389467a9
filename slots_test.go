package falldue

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/claim"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// takeSlot takes a claim slot until the test ends.
func takeSlot(t *testing.T, q *Queue, slot int64) {
	t.Helper()
	tx, err := q.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	got := 0
	if q.store.Server().Caps.UpdateReturning {
		err = tx.QueryRowContext(t.Context(), "select case when pg_try_advisory_xact_lock($1) or pg_try_advisory_xact_lock($1 + 1) then 1 else 0 end", slot).Scan(&got)
	} else {
		stmt := statements.TakeClaimSlot(q.store.Server())
		err = tx.QueryRowContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": slot}, nil)...).Scan(&got)
	}
	if err != nil || got == 0 {
		t.Fatalf("no slot is free (error %v)", err)
	}
}

// TestClaimsGoOnWithoutASlot: the processes that hold the slots may be suspended. Others
// go on until all their handlers run.
func TestClaimsGoOnWithoutASlot(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		const tasks = 2 * store.MaxBatch
		q, err := New(db, Config{Concurrency: tasks})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := NewKind[int]("slot", KindConfig{})
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, tasks)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
		defer stop()
		begun, end := make(chan struct{}, tasks), make(chan struct{})
		Handle(q, k, func(context.Context, Task[int]) error { begun <- struct{}{}; <-end; return nil })
		if q.store.Server().Caps.SkipLocked {
			slot := q.store.SlotName(DefaultQueue, []string{k.Name()})
			takeSlot(t, q, slot)
			takeSlot(t, q, slot)
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
		if took := time.Since(start); q.store.Server().Caps.SkipLocked && took < claim.SlotPatience {
			t.Errorf("the second large claim took no slot: all tasks run after %v", took)
		}
		close(end)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
