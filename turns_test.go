package falldue

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// takeTurn takes a turn of the default queue until the test, or the transaction, ends.
func takeTurn(t *testing.T, s *store) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	turn, got := s.turnOf(DefaultQueue), 0
	if s.server.Caps.UpdateReturning {
		err = tx.QueryRowContext(t.Context(), "select case when pg_try_advisory_xact_lock($1) or pg_try_advisory_xact_lock($1 + 1) then 1 else 0 end", turn).Scan(&got)
	} else {
		stmt := sqlgen.Turn(s.server)
		err = tx.QueryRowContext(t.Context(), stmt.SQL, stmt.Bind(sqlgen.Values{"turn": turn}, nil)...).Scan(&got)
	}
	if err != nil || got == 0 {
		t.Fatalf("no turn is left (error %v)", err)
	}
	return tx
}

func TestLargeClaimsWaitForTheirTurn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := New(db, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !q.store.server.Caps.SkipLocked {
			t.Skip("it has no turns: nobody can step over rows that others have locked")
		}
		k := NewKind[int]("turn", KindConfig{})
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, 4)); err != nil {
			t.Fatal(err)
		}
		claim := func(queue string, inTurn bool) (int, error) {
			got, err := q.store.claim(t.Context(), claimParams{queue, "me", time.Minute, 1, inTurn, []want{
				{lane: lane{state: sqlgen.StateOpen, kind: "turn"}, rule: newRule(backoff.Zizq())},
			}})
			return len(got), err
		}
		for i := range 3 { // each gives its turn back
			if n, err := claim(DefaultQueue, true); n != 1 || err != nil {
				t.Fatalf("claim %d in turn took %d tasks (error %v), want 1", i+1, n, err)
			}
		}
		first := takeTurn(t, q.store)
		takeTurn(t, q.store)
		if n, err := claim(DefaultQueue, true); n != 0 || !errors.Is(err, errNoTurn) {
			t.Errorf("while others have the turns a claim took %d tasks (error %v), want errNoTurn", n, err)
		}
		if _, err := claim("other", true); err != nil {
			t.Errorf("the turns of another queue: %v", err)
		}
		if err := first.Rollback(); err != nil {
			t.Fatal(err)
		}
		if !q.store.server.Caps.UpdateReturning {
			return // a turn is the connection's, which went back to the pool
		}
		if n, err := claim(DefaultQueue, true); n != 1 || err != nil {
			t.Errorf("after a turn has ended a claim took %d tasks (error %v), want 1", n, err)
		}
	})
}

// TestClaimsWithoutATurn: whoever has the turns may stand still. Others go on.
func TestClaimsWithoutATurn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		const tasks = 2 * maxBatch
		q, err := New(db, Config{Workers: maxBatch})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !q.store.server.Caps.SkipLocked {
			t.Skip("it has no turns: nobody can step over rows that others have locked")
		}
		k := NewKind[int]("turn", KindConfig{})
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, tasks)); err != nil {
			t.Fatal(err)
		}
		takeTurn(t, q.store)
		takeTurn(t, q.store)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ran := make(chan struct{}, tasks)
		Handle(q, k, func(context.Context, Task[int]) error { ran <- struct{}{}; return nil })
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		for i := range tasks {
			select {
			case <-ran:
			case <-ctx.Done():
				t.Fatalf("%d of %d tasks ran", i, tasks)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPollersQueueUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q queueing
		if q.needs(maxBatch) {
			t.Error("the first claim needs a turn")
		}
		q.claimed(maxBatch)
		if !q.needs(maxBatch) || q.needs(turnSize-1) {
			t.Error("after a large claim a large one needs no turn, or a small one does")
		}
		tries := 0
		for start := time.Now(); q.needs(maxBatch); tries++ {
			wait := q.again()
			if wait < minTurnWait/2 || wait >= maxTurnWait {
				t.Fatalf("wait %d is %v", tries, wait)
			}
			time.Sleep(wait)
			if time.Since(start) > turnPatience+maxTurnWait {
				t.Fatal("it waits for ever")
			}
		}
		if tries < 8 || tries > 20 {
			t.Errorf("%d tries in %v", tries, turnPatience)
		}
		q.claimed(maxBatch)
		if !q.needs(maxBatch) {
			t.Error("after one claim without a turn it goes on without")
		}
		q.claimed(1)
		if q.needs(maxBatch) {
			t.Error("a queue with hardly anything in it needs turns")
		}
	})
}
