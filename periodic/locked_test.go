package periodic_test

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// TestLockedScheduleDelaysNoOther: somebody holds the lock of a schedule's row for longer than
// a scheduler waits for the database.
func TestLockedScheduleDelaysNoOther(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("SQLite locks the whole database")
		}
		const patience = 5 * time.Second // of a scheduler
		db := testdb.Open(t, engine)
		q := newQueue(t, db, falldue.Config{})
		other := falldue.NewKind[string]("other", falldue.KindConfig{})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "a-locked", Spec: "@every 1s", Task: other.Params("")},
			periodic.Schedule{Name: "b-runs", Spec: "@every 1s", Task: report.Params("")},
		)
		tick(t, s)
		tx := db.MustBegin()
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "select name from falldue_schedules where name = 'a-locked' for update"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		waitForTasks := func(kind string, enough func([]falldue.TaskInfo) bool) {
			t.Helper()
			deadline, look := time.Now().Add(testdb.Patience), time.NewTicker(10*time.Millisecond)
			defer look.Stop()
			for {
				page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: kind})
				if err != nil {
					t.Fatal(err)
				}
				if enough(page.Tasks) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("waited for tasks of kind %s; there are %+v", kind, page.Tasks)
				}
				<-look.C
			}
		}
		// A scheduler that waits for the lock needs its patience twice for any three ticks.
		waitForTasks("report", func(list []falldue.TaskInfo) bool {
			n := len(list)
			return n >= 3 && list[n-1].CreatedAt.Sub(list[n-3].CreatedAt) < 2*patience
		})
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		waitForTasks("other", func(list []falldue.TaskInfo) bool { return len(list) > 0 })
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
