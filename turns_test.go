package falldue

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// takeTurn takes a turn until the test, or the transaction, ends.
func takeTurn(t *testing.T, s *store, turn int64) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	got := 0
	if s.server.Caps.UpdateReturning {
		err = tx.QueryRowContext(t.Context(), "select case when pg_try_advisory_xact_lock($1) or pg_try_advisory_xact_lock($1 + 1) then 1 else 0 end", turn).Scan(&got)
	} else {
		stmt := statements.TakeClaimSlot(s.server)
		err = tx.QueryRowContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": turn}, nil)...).Scan(&got)
	}
	if err != nil || got == 0 {
		t.Fatalf("no turn is left (error %v)", err)
	}
	return tx
}

// endTurns gives back the turns that a transaction took, and ends it.
func endTurns(t *testing.T, s *store, tx *sql.Tx, turn int64) {
	t.Helper()
	for number := 1; number <= 2 && !s.server.Caps.UpdateReturning; number++ {
		stmt := statements.ReleaseClaimSlot(s.server)
		if _, err := tx.ExecContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": turn, "number": number}, nil)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
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
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, 5), nil); err != nil {
			t.Fatal(err)
		}
		turn := turnOf(q.cfg, DefaultQueue, q.handlers)
		claim := func(turn int64) (int, error) {
			got, err := q.store.claim(t.Context(), claimParams{DefaultQueue, "me", time.Minute, 1, turn, []want{
				{lane: lane{state: statements.StateOpen, kind: "turn"}, rule: newRule(backoff.Zizq())},
			}})
			return len(got), err
		}
		for i := range 3 { // each gives its turn back, so that other connections can take both
			if n, err := claim(turn); n != 1 || err != nil {
				t.Fatalf("claim %d in turn took %d tasks (error %v), want 1", i+1, n, err)
			}
			idle, err := db.Conn(t.Context()) // the one that claimed
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range []*sql.Tx{takeTurn(t, q.store, turn), takeTurn(t, q.store, turn)} {
				endTurns(t, q.store, tx, turn)
			}
			_ = idle.Close()
		}
		first := takeTurn(t, q.store, turn)
		takeTurn(t, q.store, turn)
		if n, err := claim(turn); n != 0 || !errors.Is(err, errNoTurn) {
			t.Errorf("while others have the turns a claim took %d tasks (error %v), want errNoTurn", n, err)
		}
		if _, err := claim(turnOf(q.cfg, "other", q.handlers)); err != nil {
			t.Errorf("the turns of another queue: %v", err)
		}
		endTurns(t, q.store, first, turn)
		if n, err := claim(turn); n != 1 || err != nil {
			t.Errorf("after a turn has ended a claim took %d tasks (error %v), want 1", n, err)
		}
	})
}

// TestClaimsWithoutATurn: whoever has the turns may stand still. Others go on,
// until all their handlers are at work.
func TestClaimsWithoutATurn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		const tasks = 2 * maxBatch
		q, err := New(db, Config{Concurrency: tasks})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := NewKind[int]("turn", KindConfig{})
		if _, err := k.EnqueueMany(t.Context(), q, make([]int, tasks), nil); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		begun, end := make(chan struct{}, tasks), make(chan struct{})
		Handle(q, k, func(context.Context, Task[int]) error { begun <- struct{}{}; <-end; return nil })
		if q.store.server.Caps.SkipLocked {
			turn := turnOf(q.cfg, DefaultQueue, q.handlers)
			takeTurn(t, q.store, turn)
			takeTurn(t, q.store, turn)
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
		if took := time.Since(start); q.store.server.Caps.SkipLocked && took < turnPatience {
			t.Errorf("the second large claim took no turn: all tasks run after %v", took)
		}
		close(end)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// noLocks is a transaction on a server that has no named locks.
type noLocks struct{ execer }

func (noLocks) query(context.Context, string, []any, func(cells) error) error {
	return &mysql.MySQLError{Number: 1235, Message: "This version of MariaDB doesn't yet support 'GET_LOCK in cluster (WSREP_ON=ON)'"}
}

func TestServersWithoutNamedLocksHaveNoTurns(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(nil, server, Config{})
	claimed := false
	if err := s.inTurn(t.Context(), noLocks{}, 2, func() error { claimed = true; return nil }); err != nil || !claimed || !s.noTurns.Load() {
		t.Errorf("claimed: %v, remembered: %v, error %v; want a claim without a turn", claimed, s.noTurns.Load(), err)
	}
}

func TestPollersQueueUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q queueing
		if q.needs(maxBatch) {
			t.Error("the first claim needs a turn")
		}
		q.claimed(maxBatch, maxBatch)
		if !q.needs(maxBatch) || q.needs(turnSize-1) {
			t.Error("after a large claim a worker of many handlers needs no turn, or one of few does")
		}
		q.claimed(1, 1)
		if !q.needs(maxBatch) {
			t.Error("a worker needs no turn although it never found less than it asked for")
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
		q.claimed(maxBatch, maxBatch)
		if !q.needs(maxBatch) {
			t.Error("after one claim without a turn it goes on without")
		}
		q.claimed(1, 2)
		if q.needs(maxBatch) {
			t.Error("a queue with hardly anything in it needs turns")
		}
	})
}
