package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// The tests of this file show that limits and unique keys rest on compare-and-sets, and that a
// test notices a missing one. Two transactions decide by the same state, one after the other.
// With its compare-and-set, the second transaction gets nothing. Then the test removes the
// condition from the text of the statement, and the second transaction gets a permit or a key that
// the first one has taken. On databases with one writer at a time, the second transaction cannot
// decide so early.

// unguarded makes a store use a statement with a part of its text replaced.
func unguarded(t *testing.T, s *Store, key stmtKey, stmt statements.Stmt, old, by string) {
	t.Helper()
	text := strings.ReplaceAll(stmt.SQL, old, by)
	if text == stmt.SQL {
		t.Fatalf("the statement %q has no %q:\n%s", key.name, old, stmt.SQL)
	}
	stmt.SQL = text
	s.stmt(key, func() statements.Stmt { return stmt })
}

// TestLimitsRestOnACompareAndSet: another worker claims the last task that a limit admits after
// a claim has read that the limit admits one.
func TestLimitsRestOnACompareAndSet(t *testing.T) {
	t.Parallel()
	forms := map[string]LimitForm{"running": Running, "window": Window, "bucket": Bucket, "sequence": Sequence}
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, guarded := range []bool{true, false} {
			list := stores(t, engine, 2)
			s, other := list[0], list[1]
			if s.server.Caps.SingleWriter {
				return
			}
			if !guarded {
				size := s.size(1)
				unguarded(t, s, stmtKey{name: "take permits", size: size}, statements.TakePermits(s.server, s.tables, size), " and t.token = s.was", "")
			}
			sources := keyed(t, s, len(forms), 2, Limit{Most: 1, Per: time.Hour})
			for name, form := range forms {
				from := sources[0]
				sources = sources[1:]
				from.Limits[0].Form = form
				p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 10, Sources: []Source{from}}
				// From now on the permits exist.
				if _, err := inTx(t.Context(), s, func(x runner) (_ struct{}, err error) {
					quotas, err := s.quotas(t.Context(), x, p)
					if err != nil {
						return struct{}{}, err
					}
					return struct{}{}, s.makePermits(t.Context(), x, []*Claim{{Limits: from.Limits}}, quotas)
				}); err != nil {
					t.Fatal(err)
				}
				var first Limited
				rests := []Rest(nil)
				second, err := inTx(t.Context(), s, func(x runner) (claims []*Claim, err error) {
					quotas, err := s.quotas(t.Context(), x, p)
					if err != nil {
						return nil, err
					}
					if first.Claims == nil {
						if first, err = other.ClaimLimited(t.Context(), p); err != nil {
							return nil, err
						}
					}
					var found []*Claim
					if found, rests, err = s.find(t.Context(), x, p, quotas); err != nil {
						return nil, err
					}
					return s.takeLimited(t.Context(), x, p, found, quotas, rests)
				})
				if err != nil || len(first.Claims) != 1 {
					t.Fatalf("limit %s: the first claim took %d tasks, error %v; want 1", name, len(first.Claims), err)
				}
				switch {
				case guarded && (len(second) != 0 || rests[0].Why != Outrun):
					t.Errorf("limit %s: beside a task that runs another claim took %d, and left %+v; want it outrun", name, len(second), rests[0])
				case !guarded && len(second) != 1:
					t.Errorf("limit %s: without the compare-and-set the other claim took %d tasks beside one that runs; want 1, which a test sees", name, len(second))
				}
			}
		}
	})
}

// TestUniqueKeysRestOnACompareAndSet: another process stores a task with a unique key after an
// enqueue has read that no task holds the key.
func TestUniqueKeysRestOnACompareAndSet(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, guarded := range []bool{true, false} {
			list := stores(t, engine, 2)
			s, other := list[0], list[1]
			if s.server.Caps.SingleWriter {
				return
			}
			if !guarded {
				key, old, by := stmtKey{name: "take keys", size: s.size(1)}, "token = values(was)", "1 = 1"
				stmt := statements.TakeKeys(s.server, s.tables, key.size)
				if statements.StoresUnique(s.server) {
					key = stmtKey{name: "store unique", unique: true}
					stmt = statements.StoreUnique(s.server, statements.EnqueueParams{Tables: s.tables, Unique: true})
				}
				if statements.ReturnsTakenKeys(s.server) {
					old, by = "where u.token = excluded.was", ""
				}
				unguarded(t, s, key, stmt, old, by)
			}
			entries, uniques := []Entry{{Queue: "default", Kind: "k", Payload: "{}", Unique: hashOf(1)}}, []Unique{{}}
			for _, before := range []string{"nobody has held", "a cancelled task has held"} {
				var first []Receipt
				left, err := inTx(t.Context(), s, func(x runner) (int, error) {
					e := s.newUniqueEnqueue(x, entries, uniques)
					found, err := e.holders(t.Context())
					if err != nil {
						return 0, err
					}
					if first == nil {
						if first, err = other.EnqueueUnique(t.Context(), nil, entries, uniques); err != nil {
							return 0, err
						}
					}
					err = e.turn(t.Context(), found)
					return len(e.left), err
				})
				if err != nil || first[0].Existed {
					t.Fatalf("a key that %s: the first enqueue returned %+v, error %v", before, first, err)
				}
				var waiting []int64
				if err := s.db.SelectContext(t.Context(), &waiting, "select id from falldue_tasks where state = 'open'"); err != nil {
					t.Fatal(err)
				}
				switch {
				case guarded && (len(waiting) != 1 || left != 1):
					t.Errorf("a key that %s: %d tasks hold it", before, len(waiting))
				case !guarded && len(waiting) != 2:
					t.Errorf("a key that %s: without the compare-and-set %d tasks hold it; want 2, which a test sees", before, len(waiting))
				}
				act(t, s, ActCancel, waiting)
			}
		}
	})
}

// TestLeasesUnderLimitsThatAreOverStayOver: expired leases of claims under limits are reported lost, since another
// worker may have the permit. The lease of a claim without a limit is extended until another worker takes the task.
func TestLeasesUnderLimitsThatAreOverStayOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 2, Sources: keyed(t, s, 1, 2, Limit{Form: Running, Most: 2})}
		result, err := s.ClaimLimited(t.Context(), p)
		if err != nil || len(result.Claims) != 2 {
			t.Fatalf("claimed %d tasks, %v; want 2", len(result.Claims), err)
		}
		over, lasts := result.Claims[0], result.Claims[1]
		if _, err := s.db.ExecContext(t.Context(), fmt.Sprintf("update falldue_tasks set updated_at = created_at where id = %d", over.ID)); err != nil {
			t.Fatal(err)
		}
		claims := []Key{{TaskID: over.ID, Fence: over.Fence}, {TaskID: lasts.ID, Fence: lasts.Fence}}
		if left, err := s.ExtendLive(t.Context(), "w", time.Minute, claims); err != nil || !slices.Equal(left.Lost, []int64{over.ID}) || len(left.Locked) > 0 {
			t.Errorf("extending leases under a limit of which that of task %d is over: %+v (error %v)", over.ID, left, err)
		}
		if left, err := s.Extend(t.Context(), "w", time.Minute, claims); err != nil || len(left.Lost)+len(left.Locked) > 0 {
			t.Errorf("extending leases without a limit: %+v (error %v)", left, err)
		}
	})
}
