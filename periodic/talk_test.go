package periodic_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// TestADefinitionEndsWithItsReleases: a release stores another definition, which is in force as
// long as a process of that release runs, and no longer.
func TestADefinitionEndsWithItsReleases(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		var log bytes.Buffer
		q := newQueue(t, db, falldue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		schedule := periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("first")}
		first := newScheduler(t, q, schedule)
		tick(t, first)
		schedule.Task = report.Params("second")
		second := newScheduler(t, q, schedule)
		tick(t, second)

		var want []string
		for range 3 { // the first release asks, and the second one answers
			clock.Jump(t, time.Hour)
			tick(t, first)
			tick(t, second)
			want = append(want, "second")
			wantReports(t, q, "both releases run", want...)
		}
		clock.Jump(t, 10*time.Minute)
		tick(t, first)
		clock.Jump(t, 10*time.Second)
		tick(t, first)
		clock.Jump(t, 50*time.Minute-10*time.Second)
		if strings.Contains(log.String(), "no process has the old definition") {
			t.Errorf("the second release has had no time to answer:\n%s", log.String())
		}
		tick(t, first) // nobody has answered
		tick(t, first)
		wantReports(t, q, "the second release has ended", append(want, "first")...)
		if !strings.Contains(log.String(), `msg="falldue: a schedule was changed" schedule=r why="no process has the old definition"`) {
			t.Errorf("it is not logged:\n%s", log.String())
		}
	})
}

// TestADefinitionThatTicksSeldomEnds: a release that has ended has moved the next tick far away.
// The ticks of the release that runs begin when it asked who has that definition.
func TestADefinitionThatTicksSeldomEnds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		schedule := periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("r")}
		first := newScheduler(t, q, schedule)
		tick(t, first)
		schedule.Spec = "@every 9000h"
		tick(t, newScheduler(t, q, schedule))
		tick(t, first)
		asked := find(t, q)
		if asked.Spec != schedule.Spec {
			t.Errorf("the schedule is %+v", asked)
		}
		clock.Jump(t, 20*time.Second)
		tick(t, first)
		if info := find(t, q); info.Spec != "@every 1h" || info.Next.Sub(asked.Now.Add(time.Hour)).Abs() > time.Minute {
			t.Errorf("after nobody has answered the schedule is %+v", info)
		}
		clock.Jump(t, time.Hour)
		tick(t, first)
		wantReports(t, q, "after an hour", "r")
	})
}
