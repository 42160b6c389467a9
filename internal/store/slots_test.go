package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// takeSlot takes a claim slot until the test or the transaction ends.
func takeSlot(t *testing.T, s *Store, slot int64) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	got := 0
	if s.server.Caps.UpdateReturning {
		err = tx.QueryRowContext(t.Context(), "select case when pg_try_advisory_xact_lock($1) or pg_try_advisory_xact_lock($1 + 1) then 1 else 0 end", slot).Scan(&got)
	} else {
		stmt := statements.TakeClaimSlot(s.server)
		err = tx.QueryRowContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": slot}, nil)...).Scan(&got)
	}
	if err != nil || got == 0 {
		t.Fatalf("no slot is free (error %v)", err)
	}
	return tx
}

// freeSlots frees the claim slots that a transaction took, and ends it.
func freeSlots(t *testing.T, s *Store, tx *sql.Tx, slot int64) {
	t.Helper()
	for number := 1; number <= 2 && !s.server.Caps.UpdateReturning; number++ {
		stmt := statements.ReleaseClaimSlot(s.server)
		if _, err := tx.ExecContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"slot": slot, "number": number}, nil)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func TestClaimsWaitForASlot(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.server.Caps.SkipLocked {
			t.Skip("it has no claim slots, since claims cannot skip locked rows")
		}
		entries := slices.Repeat([]Entry{{Queue: "default", Kind: "slot", Payload: "{}"}}, 5)
		if _, err := s.Enqueue(t.Context(), nil, entries); err != nil {
			t.Fatal(err)
		}
		slot := s.SlotName("default", []string{"slot"})
		claim := func(slot int64) (int, error) {
			got, err := s.Claim(t.Context(), ClaimParams{Queue: "default", Worker: "me", Lease: time.Minute, Limit: 1, Slot: slot, Sources: []Source{
				{Lane: Lane{State: statements.StateOpen, Kind: "slot"}, Delay: NewDelay(sqlgen.Formula{})},
			}})
			return len(got), err
		}
		for i := range 3 { // each releases its slot, so that other connections can take both
			if n, err := claim(slot); n != 1 || err != nil {
				t.Fatalf("claim %d in a slot took %d tasks (error %v), want 1", i+1, n, err)
			}
			idle, err := db.Conn(t.Context()) // the one that claimed
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range []*sql.Tx{takeSlot(t, s, slot), takeSlot(t, s, slot)} {
				freeSlots(t, s, tx, slot)
			}
			_ = idle.Close()
		}
		first := takeSlot(t, s, slot)
		takeSlot(t, s, slot)
		if n, err := claim(slot); n != 0 || !errors.Is(err, ErrNoSlot) {
			t.Errorf("while others hold the slots, a claim took %d tasks (error %v), want ErrNoSlot", n, err)
		}
		if _, err := claim(s.SlotName("other", []string{"slot"})); err != nil {
			t.Errorf("the slots of another queue: %v", err)
		}
		freeSlots(t, s, first, slot)
		if n, err := claim(slot); n != 1 || err != nil {
			t.Errorf("after a slot was freed a claim took %d tasks (error %v), want 1", n, err)
		}
	})
}

// noLocks is a transaction on a server that has no named locks.
type noLocks struct{ runner }

func (noLocks) query(context.Context, statements.Stmt, statements.Values, []statements.Row, func(row) error) error {
	return &mysql.MySQLError{Number: 1235, Message: "This version of MariaDB doesn't yet support 'GET_LOCK in cluster (WSREP_ON=ON)'"}
}

func TestServersWithoutNamedLocksHaveNoSlots(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.MariaDB)
	if err != nil {
		t.Fatal(err)
	}
	s := New(nil, server, Options{})
	release, err := s.takeSlot(t.Context(), noLocks{}, 2)
	if err != nil || !s.noSlots.Load() {
		t.Fatalf("remembered: %v, error %v; want a claim without a slot", s.noSlots.Load(), err)
	}
	if err := release(nil); err != nil {
		t.Error(err)
	}
}

// TestSlotHolders: the holders of slots are known while they hold them. On servers with advisory locks, two claims
// of one connection are two holders.
func TestSlotHolders(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		if !statements.HasClaimSlots(s.server) {
			t.Skip("it has no claim slots")
		}
		slot := s.SlotName("default", []string{"slot"})
		holders := func(slot int64) string {
			text, err := s.SlotHolders(t.Context(), slot)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if got := holders(slot); got != "" {
			t.Errorf("the holders of free slots are %q", got)
		}
		first, second := takeSlot(t, s, slot), takeSlot(t, s, slot)
		both := holders(slot)
		if strings.Count(both, " ") != 1 || holders(slot) != both {
			t.Errorf("the holders of both slots are %q and then %q, want two names, unchanged", both, holders(slot))
		}
		if got := holders(s.SlotName("other", []string{"slot"})); got != "" {
			t.Errorf("the holders of the slots of another queue are %q", got)
		}
		freeSlots(t, s, first, slot)
		one := holders(slot)
		if one == "" || !strings.Contains(both, one) {
			t.Errorf("of the holders %q, the one that is left is %q", both, one)
		}
		freeSlots(t, s, second, slot)
		if again := takeSlot(t, s, slot); s.server.Caps.Locks == dialect.AdvisoryLocks && strings.Contains(both, holders(slot)) {
			t.Errorf("another transaction has the same name as one of %q", both)
			freeSlots(t, s, again, slot)
		}
	})
}
