package periodic_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// TestSchedulesThatAreDueTogether: a few statements store the tasks of all.
func TestSchedulesThatAreDueTogether(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		const many = 200
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		list := make([]periodic.Schedule, many)
		for i := range list {
			list[i] = periodic.Schedule{Name: fmt.Sprintf("s.%03d", i), Spec: "@every 1h", Task: report.Params(fmt.Sprint(i))}
		}
		s := newScheduler(t, q, list...)
		tick(t, s)
		for round := 1; round <= 2; round++ {
			clock.Jump(t, time.Hour)
			if next := tick(t, s); next <= 0 {
				t.Errorf("the next tick is in %v", next)
			}
			page, err := ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: many * 3})
			tasks := page.Tasks
			if err != nil || len(tasks) != many*round {
				t.Fatalf("there are %d tasks, error %v", len(tasks), err)
			}
			statements := map[time.Time]bool{}
			for i, one := range tasks[len(tasks)-many:] {
				statements[one.CreatedAt] = true
				if want := fmt.Sprintf("%q", fmt.Sprint(i)); string(one.Payload) != want {
					t.Errorf("task %d has the payload %s, want %s", i, one.Payload, want)
				}
			}
			if len(statements) > 8 {
				t.Errorf("%d tasks were stored at %d moments", many, len(statements))
			}
		}
		rows, err := periodic.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i, one := range rows {
			if info, err := q.Task(t.Context(), one.LastTask); err != nil || string(info.Payload) != fmt.Sprintf("%q", fmt.Sprint(i)) || one.Last.IsZero() || !one.Next.After(one.Now) {
				t.Errorf("%+v has the last task %+v, error %v", one, info, err)
			}
		}
	})
}
