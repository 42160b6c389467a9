package periodic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// dayReport returns the task that reports about the tick's day.
func dayReport(tick time.Time) falldue.EnqueueParams {
	return report.Params(tick.Format("Mon 15:04 MST"), falldue.EnqueueOptions{Key: tick.Format("2006-01")})
}

// TestTaskAt: the tasks of ticks have arguments of their ticks, in the zone of the schedule.
func TestTaskAt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		// The first Monday of a February to come, at half past ten in Berlin.
		now := clock.Now(t)
		monday := time.Date(now.Year()+1, time.February, 1, 9, 30, 0, 0, time.UTC)
		for monday.Weekday() != time.Monday {
			monday = monday.AddDate(0, 0, 1)
		}
		clock.Jump(t, monday.Sub(now))
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "0 12 * * *", Zone: "Europe/Berlin", Missed: periodic.All(2), TaskAt: dayReport})
		tick(t, s)
		if info := find(t, q); info.Kind != "report" || info.Queue != "default" || info.Defined.Sub(info.Now).Abs() > time.Minute {
			t.Errorf("the schedule is %+v", info)
		}
		clock.Jump(t, 2*time.Hour)
		tick(t, s)
		list := tasktest.All(t, q, report)
		if len(list) != 1 || list[0].Args != "Mon 12:00 CET" || list[0].Key != monday.Format("2006-01") {
			t.Fatalf("after a tick the tasks are %+v", list)
		}
		clock.Jump(t, 5*24*time.Hour)
		tick(t, s)
		wantReports(t, q, "of five missed ticks the last two", "Mon 12:00 CET", "Fri 12:00 CET", "Sat 12:00 CET")

		// A trigger adds a tick. The one after it stays.
		next := find(t, q).Next
		clock.Jump(t, time.Hour)
		if id, err := periodic.Trigger(t.Context(), q, "r"); id != 0 || err != nil {
			t.Fatalf("a trigger gave task %d, error %v", id, err)
		}
		tick(t, s)
		if got := reports(t, q); len(got) != 4 || !strings.HasPrefix(got[3], "Sat 13:3") { // half past one
			t.Errorf("a trigger gave %q", got)
		}
		if after := find(t, q).Next; !after.Equal(next) {
			t.Errorf("a trigger moved the next tick from %v to %v", next, after)
		}
		if err := periodic.Pause(t.Context(), q, "r"); err != nil {
			t.Fatal(err)
		}
		if _, err := periodic.Trigger(t.Context(), q, "r"); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), "resume") {
			t.Errorf("a trigger of a schedule that is paused: error %v", err)
		}
		if err := periodic.Resume(t.Context(), q, "r"); err != nil {
			t.Fatal(err)
		}

		// A release in which each tick has one task leaves the ticks to the release that was
		// started last.
		constant := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "0 12 * * *", Zone: "Europe/Berlin", Task: report.Params("constant")})
		tick(t, constant)
		tick(t, newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "0 12 * * *", Zone: "Europe/Berlin", TaskAt: dayReport}))
		clock.Jump(t, 24*time.Hour)
		tick(t, constant)
		if n := len(reports(t, q)); n != 4 {
			t.Errorf("a release without TaskAt enqueued a task for a schedule with it: %q", reports(t, q))
		}
		tick(t, s)
		if got := reports(t, q); len(got) != 5 || got[4] != "Sun 12:00 CET" {
			t.Errorf("the tasks are %q", got)
		}
		// And the other way around.
		tick(t, newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "0 12 * * *", Zone: "Europe/Berlin", Task: report.Params("constant")}))
		clock.Jump(t, 24*time.Hour)
		tick(t, s)
		if got := reports(t, q); len(got) != 6 || got[5] != "constant" {
			t.Errorf("the tasks are %q", got)
		}
	})
}

// TestTaskAtThatFails: one function panics, another returns a task that is not allowed, and a
// third goes on.
func TestTaskAtThatFails(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		broken := false
		s := newScheduler(t, q,
			periodic.Schedule{Name: "a", Spec: "@every 1h", TaskAt: func(time.Time) falldue.EnqueueParams {
				if broken {
					panic("on purpose")
				}
				return report.Params("a")
			}},
			periodic.Schedule{Name: "b", Spec: "@every 1h", TaskAt: func(time.Time) falldue.EnqueueParams {
				if broken {
					return report.Params("b", falldue.EnqueueOptions{Delay: time.Hour})
				}
				return report.Params("b")
			}},
			periodic.Schedule{Name: "c", Spec: "@every 1h", TaskAt: func(time.Time) falldue.EnqueueParams { return report.Params("c") }})
		tick(t, s)
		broken = true
		clock.Jump(t, time.Hour)
		_, err := s.Tick(t.Context())
		for _, want := range []string{"schedule a: TaskAt panicked: on purpose", "schedule b: TaskAt(2", "Delay 1h"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("error %v, want one that has %q", err, want)
			}
		}
		wantReports(t, q, "two functions fail", "c")
		broken = false
		tick(t, s)
		wantReports(t, q, "they have been mended", "c", "a", "b")
	})
}

// TestLostSchedules: a failover, or somebody, has lost what was stored of schedules.
func TestLostSchedules(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		paused := periodic.Schedule{Name: "paused", Spec: "@every 1h", Task: report.Params("paused")}
		first := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("first")}, paused)
		tick(t, first)
		if err := periodic.Pause(t.Context(), q, "paused"); err != nil {
			t.Fatal(err)
		}
		second := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1h", TaskAt: func(tick time.Time) falldue.EnqueueParams {
			return report.Params(fmt.Sprint("second at ", tick.Unix()))
		}}, paused)
		tick(t, second)
		tick(t, first) // has seen both definitions
		was := find(t, q)

		clock.Jump(t, 61*time.Minute)
		db.MustExec("delete from falldue_schedules")
		tick(t, first)
		is := find(t, q)
		if !is.Next.Equal(was.Next) || !is.Defined.Equal(was.Defined) || is.DefinedBy != was.DefinedBy {
			t.Errorf("after it was lost the schedule is %+v, and was %+v", is, was)
		}
		list, err := periodic.List(t.Context(), q)
		if err != nil || len(list) != 2 || !list[0].Paused || list[0].Name != "paused" {
			t.Errorf("the schedules are %+v (error %v), and the first was paused", list, err)
		}
		tick(t, second)
		tick(t, second)
		want := fmt.Sprint("second at ", was.Next.Unix())
		wantReports(t, q, "after a schedule was lost whose tick was due", want)

		// Lost right after its tick: the next one is as it was.
		db.MustExec("delete from falldue_schedules")
		tick(t, second)
		tick(t, second)
		if is := find(t, q); !is.Next.Equal(was.Next.Add(time.Hour)) {
			t.Errorf("after it was lost the next tick is at %v, and the one before was at %v", is.Next, was.Next)
		}
		wantReports(t, q, "after a schedule was lost that had ticked", want)
		db.MustExec("delete from falldue_schedules")
		tick(t, first)

		// An earlier definition comes back.
		tick(t, second)
		moment := "'2026-01-01'"
		if engine == testdb.SQLite {
			moment = "1"
		}
		db.MustExec("update falldue_schedules set spec = '@every 2h', hash = 'x', defined_at = " + moment + " where name = 'r'")
		tick(t, second)
		if is := find(t, q); is.Spec != "@every 1h" || !is.Defined.Equal(was.Defined) || !is.Next.Equal(was.Next.Add(time.Hour)) {
			t.Errorf("after an earlier definition came back the schedule is %+v, and was %+v", is, was)
		}
	})
}

// TestRunStoresLostSchedules: a schedule that was lost comes back while Run runs.
func TestRunStoresLostSchedules(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{})
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1s", Task: report.Params("r")})
		tick(t, s)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		if err := periodic.Remove(t.Context(), q, "r"); err != nil {
			t.Fatal(err)
		}
		deadline, look := time.Now().Add(testdb.Patience), time.NewTicker(10*time.Millisecond)
		defer look.Stop()
		for len(reports(t, q)) < 2 {
			if time.Now().After(deadline) {
				t.Fatal("waited in vain for two tasks of a schedule that was lost")
			}
			<-look.C
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
