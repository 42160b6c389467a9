package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestClaimHasAllTimes: a claim has the times that its row leaves out, and edited times: zero is a
// time, too.
func TestClaimHasAllTimes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		claim := func(lane Lane) *Claim {
			t.Helper()
			claims, err := s.Claim(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 1, Sources: []Source{{Lane: lane, Running: statements.StateSnoozed}}})
			if err != nil || len(claims) != 1 {
				t.Fatalf("claimed %d tasks, error %v", len(claims), err)
			}
			return claims[0]
		}
		enqueue := func(e Entry) {
			t.Helper()
			db.MustExec("delete from falldue_tasks")
			if _, err := s.Enqueue(t.Context(), nil, []Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
		first := Lane{State: statements.StateOpen, Kind: "k"}
		enqueue(Entry{Queue: "default", Kind: "k", Payload: "1"})
		if c := claim(first); c.First.V != c.Now || c.Created.V != c.Anchor || c.Previous.Valid {
			t.Errorf("of a new task: %+v", c)
		}
		enqueue(Entry{Queue: "default", Kind: "k", Payload: "1", Delay: -int64(time.Hour / time.Microsecond)})
		if c := claim(first); c.First.V != c.Now || c.Created.V < c.Anchor+int64(time.Hour/time.Microsecond) || c.Created.V > c.Now {
			t.Errorf("of a task that was due before it was stored: %+v", c)
		}
		db.MustExec("update falldue_tasks set updated_at = created_at") // its lease has expired
		again := claim(Lane{State: statements.StateSnoozed, Kind: "k", Attempts: 1})
		if !again.First.Valid || again.First.V > again.Now || again.First.V < again.Created.V || !again.Previous.Valid || again.Previous.V != "w" {
			t.Errorf("of a second attempt: %+v", again)
		}
		enqueue(Entry{Queue: "default", Kind: "k", Payload: "1"})
		epoch := map[string]string{testdb.SQLite: "0"}[engine]
		if epoch == "" {
			epoch = "'1970-01-01 00:00:00'"
		}
		if engine == testdb.Postgres {
			epoch = "timestamptz 'epoch'"
		}
		db.MustExec("update falldue_tasks set state = 'snoozed', attempts = 1, created_at = " + epoch + ", first_attempted_at = " + epoch)
		if c := claim(Lane{State: statements.StateSnoozed, Kind: "k", Attempts: 1}); c.First.V != 0 || c.Created.V != 0 {
			t.Errorf("of a task whose first attempt was in 1970: %+v", c)
		}
	})
}
