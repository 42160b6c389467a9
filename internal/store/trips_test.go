package store

import (
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// questions returns how many statements the only connection of a pool has sent to its server.
func questions(t *testing.T, db *sqlx.DB) (n int) {
	t.Helper()
	var name string
	if err := db.QueryRowContext(t.Context(), "show session status like 'Questions'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClaimsAndSettlesTakeFewStatements counts the statements of a claim and of a settle. Each is a round trip. The
// first ones also prepare statements and ask about the session, and don't count.
func TestClaimsAndSettlesTakeFewStatements(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine != testdb.MySQL && engine != testdb.MariaDB {
			t.Skip("no session counts its statements")
		}
		db := testdb.Open(t, engine)
		db.SetMaxOpenConns(1)
		s := migrated(t, db)
		count := func(do func()) int {
			before := questions(t, db)
			do()
			return questions(t, db) - before - 1
		}
		begin := map[string]int{testdb.MySQL: 2, testdb.MariaDB: 1}[engine]
		for _, c := range []struct {
			about         string
			tasks         int
			kept          bool
			claim, settle int
		}{
			{"a task that is deleted", 1, false, begin + 3, 1},
			{"a task that is kept", 1, true, begin + 3, 1},
			{"two tasks", 2, false, begin + 3, begin + 2}, // a transaction, which settles both or none
		} {
			for _, counted := range []bool{false, true} {
				if _, err := s.Enqueue(t.Context(), nil, make([]Entry, c.tasks)); err != nil {
					t.Fatal(err)
				}
				var claims []*Claim
				params := ClaimParams{Worker: "w", Lease: time.Minute, Limit: 10, Sources: []Source{{Lane: Lane{State: statements.StateOpen}, Running: statements.StateOpen}}}
				claiming := count(func() {
					var err error
					if claims, err = s.Claim(t.Context(), params); err != nil || len(claims) != c.tasks {
						t.Fatalf("%s: claimed %d tasks, error %v", c.about, len(claims), err)
					}
				})
				var ends []*Settlement
				for _, one := range claims {
					e := &Settlement{Settlement: statements.Settlement{State: statements.StateDone}, RetainDone: c.kept}
					e.Key = Key{TaskID: one.ID, Fence: one.Fence}
					ends = append(ends, e)
				}
				settling := count(func() {
					if left, err := s.Settle(t.Context(), "w", ends); err != nil || len(left.Lost)+len(left.Locked) > 0 {
						t.Fatalf("%s: left %+v, error %v", c.about, left, err)
					}
				})
				if counted && (claiming != c.claim || settling != c.settle) {
					t.Errorf("%s: a claim of %d statements and a settle of %d, want %d and %d", c.about, claiming, settling, c.claim, c.settle)
				}
			}
		}
		// A task that the worker has lost is not settled, and the settle finds that out.
		if left, err := s.Settle(t.Context(), "w", []*Settlement{{Settlement: statements.Settlement{Key: Key{TaskID: 1 << 40}, State: statements.StateDone}}}); err != nil || len(left.Lost) != 1 {
			t.Errorf("a task that is gone: left %+v, error %v", left, err)
		}
	})
}
