package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// leaveRows makes a trigger leave the rows of a table as they are, without an error. This looks as if
// another transaction has locked the rows, or has changed them in the meantime.
func leaveRows(engine, table string) []string {
	if engine == testdb.Postgres {
		return []string{
			"create function leave() returns trigger language plpgsql as 'begin return null; end'",
			"create trigger leave before update on " + table + " for each row execute function leave()",
		}
	}
	return []string{"create trigger leave before update on " + table + " begin select raise(ignore); end"}
}

// TestLaneThatLosesAPermitHasToWait: the lane's limit has other permits, which would bring the lane back
// immediately. A claim also changes no row if a trigger of the user's prevents that.
func TestLaneThatLosesAPermitHasToWait(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine != testdb.Postgres && engine != testdb.SQLite {
			t.Skip("its triggers cannot leave a row as it is")
		}
		for _, table := range []string{"falldue_permits", "falldue_tasks"} {
			for _, limit := range []Limit{{Form: Running, Most: 5}, {Form: Bucket, Most: 5, Per: time.Second}} {
				db := testdb.Open(t, engine)
				s := migrated(t, db)
				sources := keyed(t, s, 1, 2, limit)
				for _, statement := range leaveRows(engine, table) {
					db.MustExec(statement)
				}
				result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 2, Sources: sources})
				if err != nil || len(result.Claims) != 0 || result.Rests[0].Why != Outrun || len(result.Open) != 0 {
					t.Errorf("%s, form %d: %+v, error %v", table, limit.Form, result, err)
				}
			}
		}
	})
}

// TestRateIsNotUsedUpByTasksThatOthersHaveTaken: a claim that comes too late returns the permits of a rate.
func TestRateIsNotUsedUpByTasksThatOthersHaveTaken(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, limit := range []Limit{{Form: Window, Most: 3, Per: time.Hour}, {Form: Bucket, Most: 3, Per: time.Hour}} {
			s := migrated(t, testdb.Open(t, engine))
			p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 4, Sources: keyed(t, s, 1, 4, limit)}
			late, err := inTx(t.Context(), s, func(x runner) ([]*Claim, error) {
				quotas, err := s.quotas(t.Context(), x, p)
				if err != nil {
					return nil, err
				}
				found, rests, err := s.find(t.Context(), x, p, quotas)
				if err != nil || len(found) != 3 {
					t.Errorf("found %d, error %v", len(found), err)
				}
				for _, c := range found[1:] {
					c.Fence += 7 // as if they had been read long ago
				}
				return s.takeLimited(t.Context(), x, p, found, quotas, rests)
			})
			if err != nil || len(late) != 1 {
				t.Errorf("form %d: %d claims, error %v", limit.Form, len(late), err)
			}
			result, err := s.ClaimLimited(t.Context(), p)
			if err != nil || len(result.Claims) != 2 {
				t.Errorf("form %d: %d claims after the late one, error %v, want 2", limit.Form, len(result.Claims), err)
			}
		}
	})
}

// TestBothSequencesOfATaskHold: the tasks of a kind are in order, and the tasks of a queue are in order.
func TestBothSequencesOfATaskHold(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		kind := Limit{Name: "kind k order of a", Form: Sequence, Most: 1}
		at := Lane{State: statements.StateOpen, Kind: "k", Key: "a"}
		one := Source{Lane: at, Running: statements.StateOpen, Limits: []Limit{kind}}
		two := Source{Lane: at, Running: statements.StateOpen, Limits: []Limit{{Name: "queue two order of a", Form: Sequence, Most: 1}, kind}}
		ids, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "one", Kind: "k", Key: "a", Payload: "{}"}, {Queue: "two", Kind: "k", Key: "a", Payload: "{}"}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "one", Worker: "w", Lease: time.Minute, Limit: 1, Sources: []Source{one}})
		if err != nil || len(result.Claims) != 1 {
			t.Fatalf("%+v, error %v", result, err)
		}
		e := &Settlement{}
		e.Key, e.State, e.Wait = Key{TaskID: ids[0], Fence: result.Claims[0].Fence}, statements.StateSnoozed, time.Hour.Microseconds()
		if left, err := s.Settle(t.Context(), "w", []*Settlement{e}); err != nil || len(left.Lost) > 0 {
			t.Fatal(left, err)
		}
		result, err = s.ClaimLimited(t.Context(), ClaimParams{Queue: "two", Worker: "w", Lease: time.Minute, Limit: 1, Sources: []Source{two}})
		if err != nil || len(result.Claims) != 0 {
			t.Errorf("%d claims, error %v: the task before it waits for a retry", len(result.Claims), err)
		}
	})
}
