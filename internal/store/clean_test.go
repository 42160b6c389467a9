package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestCleanDeletesTheOldestOfEachLane: finished tasks are found by their lanes. The tasks whose
// retention has expired are deleted from each lane, a batch at a time. The others stay.
func TestCleanDeletesTheOldestOfEachLane(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const kept, old = 50, MaxBatch + 100 // of each lane
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		clock := s.server.Clock()
		insert := func(queue, state string, priority int, kind string, attempts, n int, ago time.Duration) {
			var values []string
			for i := range n {
				moment := clock.Shift(clock.Now, fmt.Sprint(-ago.Microseconds()-int64(i)))
				values = append(values, fmt.Sprintf("('%s', '%s', %d, '%s', %d, %s, %s, '{}')", queue, state, priority, kind, attempts, moment, clock.Now))
			}
			db.MustExec("insert into falldue_tasks (queue, state, priority, kind, attempts, updated_at, created_at, payload) values " + strings.Join(values, ","))
		}
		lanes := []Lane{
			{State: "done", Priority: -7, Kind: "a", Attempts: 1}, {State: "done", Priority: -12, Kind: "a", Attempts: 1},
			{State: "done", Kind: "a", Attempts: 1}, {State: "done", Kind: "a", Attempts: 12}, {State: "done", Kind: "b.b", Attempts: 3},
		}
		for _, l := range lanes {
			insert("default", l.State, l.Priority, l.Kind, l.Attempts, kept, time.Minute)
			insert("default", l.State, l.Priority, l.Kind, l.Attempts, old, 2*time.Hour)
		}
		for _, other := range []string{"open", "dead", "snoozed"} {
			insert("default", other, 0, "a", 1, 3, 2*time.Hour)
		}
		insert("other", "done", 0, "a", 1, 3, 2*time.Hour)
		heads, err := s.FinishedLanes(t.Context(), "default", statements.StateDone)
		if err != nil || len(heads) != len(lanes) {
			t.Fatalf("%d lanes are found, want %d (error %v)", len(heads), len(lanes), err)
		}
		for _, h := range heads {
			if ago := Duration(h.Now - h.Anchor); ago < 2*time.Hour || ago > 3*time.Hour {
				t.Errorf("the first task of %+v finished %v ago", h.Lane, ago)
			}
			since := h.Anchor
			for i, want := range []int{MaxBatch, old - MaxBatch, 0} {
				n, last, err := s.Clean(t.Context(), CleanParams{Queue: "default", Lane: h.Lane, Retention: time.Hour, Since: since, Limit: MaxBatch})
				if err != nil || n != want || n > 0 && last <= since {
					t.Errorf("batch %d of %+v: %d tasks up to %d, want %d after %d (error %v)", i, h.Lane, n, last, want, since, err)
				}
				since = max(since, last)
			}
		}
		var left int
		if err := db.GetContext(t.Context(), &left, "select count(*) from falldue_tasks"); err != nil || left != kept*len(lanes)+12 {
			t.Errorf("%d tasks are left, want %d (error %v)", left, kept*len(lanes)+12, err)
		}
	})
}
