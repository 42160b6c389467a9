package periodic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

var report = falldue.NewKind[string]("report", falldue.KindConfig{})

// newQueue returns a queue whose tables have been made.
func newQueue(t *testing.T, db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

func newScheduler(t *testing.T, q *falldue.Queue, list ...periodic.Schedule) *periodic.Scheduler {
	t.Helper()
	s, err := periodic.New(q, list...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tick makes a scheduler tick, and returns how long it is until the next tick.
func tick(t *testing.T, s *periodic.Scheduler) time.Duration {
	t.Helper()
	next, err := s.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// find returns the schedule r as it is stored.
func find(t *testing.T, q *falldue.Queue) periodic.Info {
	t.Helper()
	list, err := periodic.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Name == "r" {
			return one
		}
	}
	t.Fatalf("there is no schedule r in %+v", list)
	return periodic.Info{}
}

// reports are the arguments of the tasks that are enqueued and not finished.
func reports(t *testing.T, q *falldue.Queue) (args []string) {
	t.Helper()
	for _, one := range tasktest.All(t, q, report) {
		args = append(args, one.Args)
	}
	return args
}

func wantReports(t *testing.T, q *falldue.Queue, what string, want ...string) {
	t.Helper()
	if got := reports(t, q); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: the tasks are %q, want %q", what, got, want)
	}
}

// TestADayOfTicks: the schedules of a queue tick while a test moves the clock, by the clock of
// the database and not by that of the process.
func TestADayOfTicks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		clock.Jump(t, 1000*time.Hour) // the process is that much late
		ran := map[string][]time.Time{}
		falldue.Handle(q, report, func(_ context.Context, task falldue.Task[string]) error {
			ran[task.Args] = append(ran[task.Args], clock.Now(t))
			return nil
		})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "hourly", Spec: "0 * * * *", Task: report.Params("hourly")},
			periodic.Schedule{Name: "often", Spec: "@every 30m", Task: report.Params("often")},
			periodic.Schedule{Name: "nightly", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: report.Params("nightly"), NoOverlap: true})
		tick(t, s)
		begin := time.Now()
		clock.Advance(t, q, 24*time.Hour)
		took := time.Since(begin)
		t.Logf("a day of ticks took %v", took)
		for name, want := range map[string]int{"hourly": 24, "often": 48, "nightly": 1} {
			if n := len(ran[name]); n != want {
				t.Errorf("%d tasks of %s, want %d: %v", n, name, want, ran[name])
			}
		}
		for _, at := range ran["hourly"] {
			if off := at.Sub(at.Truncate(time.Hour)); off > took+time.Second {
				t.Errorf("an hourly task ran at %v", at)
			}
		}
	})
}

// TestSchedules goes through the life of a schedule.
func TestSchedules(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) { checkSchedule(t, testdb.OpenDriver(t, engine, driver)) })
		}
	})
}

func checkSchedule(t *testing.T, db *sqlx.DB) {
	ctx := t.Context()
	clock := tasktest.NewClock(t, db)
	var log bytes.Buffer
	q := newQueue(t, db, falldue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Release: "v7"})
	priority := -3
	schedule := periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("first", falldue.EnqueueOptions{
		Queue: "slow", Priority: &priority, Key: "customer:42", MaxAttempts: 7,
	})}
	s := newScheduler(t, q, schedule)
	if next := tick(t, s); next <= 59*time.Minute || next > time.Hour {
		t.Errorf("the first tick is in %v", next)
	}
	wantReports(t, q, "before the first tick")
	first := find(t, q)
	clock.Jump(t, time.Hour)
	tick(t, s)
	tick(t, s)
	list := tasktest.All(t, q, report)
	if len(list) != 1 || list[0].Queue != "slow" || list[0].Priority != -3 || list[0].Key != "customer:42" || list[0].MaxAttempts != 7 || list[0].Args != "first" {
		t.Fatalf("after the first tick the tasks are %+v", list)
	}
	info := find(t, q)
	if info.LastTask != list[0].ID || info.Last.Sub(first.Next).Abs() > time.Minute || !info.Next.Equal(first.Next.Add(time.Hour)) ||
		info.Kind != "report" || info.Queue != "slow" || info.Zone != "UTC" || !strings.HasSuffix(info.DefinedBy, " v7") || !first.Last.IsZero() {
		t.Errorf("after the first tick the schedule is %+v, and was %+v", info, first)
	}

	if err := errors.Join(periodic.Pause(ctx, q, "r"), periodic.Pause(ctx, q, "r")); err != nil {
		t.Fatal(err)
	}
	clock.Jump(t, 90*time.Minute)
	tick(t, s)
	wantReports(t, q, "while it is paused", "first")
	if !find(t, q).Paused {
		t.Error("the schedule is not paused")
	}
	id, err := periodic.Trigger(ctx, q, "r")
	if err != nil {
		t.Fatal(err)
	}
	wantReports(t, q, "after a trigger", "first", "first")
	if info := find(t, q); info.LastTask != id {
		t.Errorf("a trigger gave task %d, and the last one is %d", id, info.LastTask)
	}
	if err := errors.Join(periodic.Resume(ctx, q, "r"), periodic.Resume(ctx, q, "r")); err != nil {
		t.Fatal(err)
	}
	tick(t, s)
	wantReports(t, q, "ticks while it was paused are left out", "first", "first")
	if next := find(t, q).Next; !next.Equal(first.Next.Add(2 * time.Hour)) {
		t.Errorf("after it was resumed the next tick is at %v, and the first was at %v", next, first.Next)
	}

	// A release with other arguments keeps the next tick, one with another spec does not.
	schedule.Task = report.Params("second")
	tick(t, newScheduler(t, q, schedule))
	if next := find(t, q).Next; !next.Equal(first.Next.Add(2 * time.Hour)) {
		t.Errorf("other arguments moved the next tick to %v", next)
	}
	tick(t, newScheduler(t, q, schedule))
	if n := strings.Count(log.String(), "a schedule was changed"); n != 1 {
		t.Errorf("one change was logged %d times", n)
	}
	schedule.Spec = "@every 10m"
	tick(t, newScheduler(t, q, schedule))
	if info := find(t, q); info.Next.Sub(info.Now) > 10*time.Minute || info.Spec != "@every 10m" {
		t.Errorf("after its spec changed the schedule is %+v", info)
	}
	if !strings.Contains(log.String(), `was_spec="@every 1h"`) {
		t.Errorf("the change of the spec was not logged:\n%s", log.String())
	}
	clock.Jump(t, 10*time.Minute)
	tick(t, s) // of the first release, which ticks by what is stored
	wantReports(t, q, "after a change", "first", "first", "second")

	if err := periodic.Remove(ctx, q, "r"); err != nil {
		t.Fatal(err)
	}
	wantReports(t, q, "after it was removed", "first", "first", "second")
	for what, err := range map[string]error{
		"pause": periodic.Pause(ctx, q, "r"), "resume": periodic.Resume(ctx, q, "r"), "remove": periodic.Remove(ctx, q, "r"),
		"trigger": func() error { _, err := periodic.Trigger(ctx, q, "r"); return err }(),
	} {
		if !errors.Is(err, falldue.ErrNotFound) || !strings.Contains(err.Error(), `no schedule "r"`) {
			t.Errorf("%s of a removed schedule: error %v", what, err)
		}
	}
}

// TestMissed: nobody was there for three and a half ticks.
func TestMissed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "all", Spec: "@every 1h", Missed: periodic.All(10), Task: report.Params("all")},
			periodic.Schedule{Name: "none", Spec: "@every 1h", Missed: periodic.None, Task: report.Params("none")},
			periodic.Schedule{Name: "once", Spec: "@every 1h", Task: report.Params("once")},
			periodic.Schedule{Name: "two", Spec: "@every 1h", Missed: periodic.All(2), Task: report.Params("two")})
		tick(t, s)
		clock.Jump(t, 210*time.Minute)
		if next := tick(t, s); next < 29*time.Minute || next > 30*time.Minute {
			t.Errorf("the next tick is in %v", next)
		}
		wantReports(t, q, "three missed ticks", "all", "all", "all", "once", "two", "two")
		clock.Jump(t, 30*time.Minute)
		tick(t, s)
		wantReports(t, q, "a tick in time", "all", "all", "all", "once", "two", "two", "all", "none", "once", "two")
	})
}

// TestNoOverlap: a tick is left out as long as the last task is not finished.
func TestNoOverlap(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		falldue.Handle(q, report, func(context.Context, falldue.Task[string]) error { return nil })
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1h", NoOverlap: true, Task: report.Params("r")})
		tick(t, s)
		for range 3 {
			clock.Jump(t, time.Hour)
			tick(t, s)
			wantReports(t, q, "the first task waits", "r")
		}
		tasktest.Drain(t, q)
		wantReports(t, q, "it has run")
		clock.Jump(t, time.Hour)
		tick(t, s)
		wantReports(t, q, "the next tick", "r")
	})
}

// TestRun runs a scheduler beside the worker, and both end.
func TestRun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := newQueue(t, testdb.Open(t, engine), falldue.Config{})
		ran := make(chan string, 100)
		falldue.Handle(q, report, func(_ context.Context, task falldue.Task[string]) error {
			ran <- task.Args
			return nil
		})
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1s", Task: report.Params("r")})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.RunWorker(ctx) }()
		<-ran
		<-ran
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRunNeedsTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@hourly", Task: report.Params("r")})
		if err := s.Run(t.Context()); !errors.Is(err, falldue.ErrNotMigrated) || strings.Count(err.Error(), "tables are missing") != 1 {
			t.Errorf("without tables: error %v", err)
		}
		falldue.Handle(q, report, func(context.Context, falldue.Task[string]) error { return nil })
		if err := s.RunWorker(t.Context()); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("beside a worker: error %v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	task := report.Params("r")
	for names, list := range map[string][]periodic.Schedule{
		"Task and TaskAt":        {{Name: "r", Spec: "@daily", Task: task, TaskAt: dayReport}},
		"TaskAt(2":               {{Name: "r", Spec: "@daily", TaskAt: func(time.Time) falldue.EnqueueParams { return falldue.EnqueueParams{} }}},
		`schedule "a b"`:         {{Name: "a b", Spec: "@daily", Task: task}},
		"schedule r: ":           {{Name: "r", Spec: "never", Task: task}},
		"Missed All(-1):":        {{Name: "r", Spec: "@daily", Missed: periodic.All(-1), Task: task}},
		"Missed All(1001)":       {{Name: "r", Spec: "@daily", Missed: periodic.All(1001), Task: task}},
		"Missed All(0): must be": {{Name: "r", Spec: "@daily", Missed: periodic.All(0), Task: task}},
		"All(5) with NoOverlap":  {{Name: "r", Spec: "@daily", Missed: periodic.All(5), NoOverlap: true, Task: task}},
		"Kind.Params":            {{Name: "r", Spec: "@daily"}},
		"Delay 1s":               {{Name: "r", Spec: "@daily", Task: report.Params("r", falldue.EnqueueOptions{Delay: time.Second})}},
		"Unique is set":          {{Name: "r", Spec: "@daily", Task: report.Params("r", falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}})}},
		"MaxAttempts -1":         {{Name: "r", Spec: "@daily", Task: report.Params("r", falldue.EnqueueOptions{MaxAttempts: -1})}},
		"schedule r is defined ": {{Name: "r", Spec: "@daily", Task: task}, {Name: "r", Spec: "@daily", Task: task}},
	} {
		if _, err := periodic.New(q, list...); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(fmt.Sprint(err), names) {
			t.Errorf("error %v, want one that names %q", err, names)
		}
	}
}
