package periodic

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestOnlyDueSchedulesAreRead: between two looks at all schedules a scheduler reads those that
// are due. It would notice the others, whose rows cannot be used.
func TestOnlyDueSchedulesAreRead(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[string]("report", falldue.KindConfig{})
	list := make([]Schedule, 5)
	for i := range list {
		list[i] = Schedule{Name: fmt.Sprint("s.", i), Spec: "@every 1h", Task: kind.Params("")}
	}
	s, err := New(q, list...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.define(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := newRun(s)
	start := func(ctx context.Context) {
		t.Helper()
		if err := r.start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	start(t.Context())
	if len(r.due) != len(list) || len(r.busy) != 0 {
		t.Fatalf("%d schedules are due some time, and %d are busy", len(r.due), len(r.busy))
	}
	rows, err := s.store.Schedules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range rows[1:] {
		broken := one.Definition
		broken.Alone = 7
		if done, err := s.store.ChangeSchedule(t.Context(), one, broken); err != nil || !done {
			t.Fatalf("changed %v, error %v", done, err)
		}
	}
	r.due["s.0"] = time.Now()
	start(t.Context())
	if wait := time.Until(r.due["s.0"]); wait < 59*time.Minute || len(r.busy) != 0 {
		t.Errorf("s.0 is due in %v, and %d schedules are busy", wait, len(r.busy))
	}
	r.readAt = r.readAt.Add(-readEvery)
	start(t.Context())
	if len(r.busy) != len(list)-1 {
		t.Errorf("after a look at all schedules %d are busy", len(r.busy))
	}
	r.all.Wait()
}
