package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

var periodicCases = []conformanceCase{
	{"any number of processes enqueue one task for each tick of a schedule", func(t *testing.T, f *fixture) {
		const processes, ticks = 4, 3
		kind := falldue.NewKind[string]("tick", falldue.KindConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		var q *falldue.Queue
		for range processes {
			q = f.queueOn(t, f.open(t), falldue.Config{})
			s, err := periodic.New(q, periodic.Schedule{Name: "each-second", Spec: "@every 1s", Missed: periodic.All(1000), Task: kind.Params("")})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			})
		}
		deadline, look := time.Now().Add(waitTimeout), time.NewTicker(20*time.Millisecond)
		defer look.Stop()
		for len(tasksOf(t, q, kind.Name())) < ticks {
			if time.Now().After(deadline) {
				t.Fatalf("waited %v for the tasks of %d ticks", waitTimeout, ticks)
			}
			<-look.C
		}
		cancel()
		all.Wait()
		tasks := tasksOf(t, q, kind.Name())
		list, err := periodic.List(t.Context(), q)
		if err != nil || len(list) != 1 {
			t.Fatalf("the schedules are %v (error %v), want one", list, err)
		}
		if last := tasks[len(tasks)-1].ID; list[0].LastTask != last {
			t.Errorf("the last task is %d, want %d", list[0].LastTask, last)
		}
		// The last tick was a second before the next one, and each tick has one task.
		for i, task := range tasks {
			tick := list[0].Next.Add(-time.Duration(len(tasks)-i) * time.Second)
			if task.CreatedAt.Before(tick) {
				t.Errorf("task %d of %d was enqueued at %v, before its tick at %v: a tick has two tasks", i+1, len(tasks), task.CreatedAt, tick)
			}
		}
	}},
	{"ticks that were missed give one task, none or each one, as the schedule says", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		kind := falldue.NewKind[string]("missed", falldue.KindConfig{})
		want := map[string]int{"once": 1, "none": 0, "two": 2, "all": 4}
		s := newSchedules(t, q,
			periodic.Schedule{Name: "once", Spec: "@every 1h", Task: kind.Params("once")},
			periodic.Schedule{Name: "none", Spec: "@every 1h", Missed: periodic.None, Task: kind.Params("none")},
			periodic.Schedule{Name: "two", Spec: "@every 1h", Missed: periodic.All(2), Task: kind.Params("two")},
			periodic.Schedule{Name: "all", Spec: "@every 1h", Missed: periodic.All(10), Task: kind.Params("all")})
		tickNow(t, s)
		f.setTick(t, q, 210*time.Minute) // four ticks ago
		tickNow(t, s)
		got := map[string]int{"none": 0}
		for _, task := range tasksOf(t, q, "missed") {
			var name string
			if err := json.Unmarshal(task.Payload, &name); err != nil {
				t.Fatal(err)
			}
			got[name]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("four missed ticks give the tasks %v, want %v", got, want)
		}
		tickNow(t, s)
		if n := len(tasksOf(t, q, "missed")); n != 7 {
			t.Errorf("after the missed ticks there are %d tasks, want 7", n)
		}
	}},
	{"a schedule without overlap leaves ticks out until its last task is finished", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		kind := falldue.NewKind[string]("alone", falldue.KindConfig{})
		s := newSchedules(t, q, periodic.Schedule{Name: "alone", Spec: "@every 1h", NoOverlap: true, Task: kind.Params("")})
		tickNow(t, s)
		for tick, want := range []int{1, 1, 2} {
			f.setTick(t, q, time.Second)
			tickNow(t, s)
			tasks := tasksOf(t, q, "alone")
			if len(tasks) != want {
				t.Fatalf("after tick %d there are %d tasks, want %d", tick, len(tasks), want)
			}
			if list, err := periodic.List(t.Context(), q); err != nil || !list[0].Next.After(list[0].Now) {
				t.Errorf("after tick %d the schedule is %+v (error %v)", tick, list, err)
			}
			if tick != 1 {
				continue
			}
			if err := q.Cancel(t.Context(), tasks[0].ID); err != nil { // it is finished
				t.Fatal(err)
			}
		}
	}},
	{"a paused schedule does not tick, its task can be triggered, and when it is resumed it continues with the next tick", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{})
		kind := falldue.NewKind[string]("paused", falldue.KindConfig{})
		s := newSchedules(t, q, periodic.Schedule{Name: "paused", Spec: "@every 1h", Missed: periodic.All(10), Task: kind.Params("")})
		tickNow(t, s)
		if err := periodic.Pause(t.Context(), control, "paused"); err != nil {
			t.Fatal(err)
		}
		wantTasks := func(what string, want int) {
			t.Helper()
			tickNow(t, s)
			if n := len(tasksOf(t, q, "paused")); n != want {
				t.Errorf("%s there are %d tasks, want %d", what, n, want)
			}
		}
		f.setTick(t, q, 150*time.Minute)
		wantTasks("after a tick while it is paused", 0)
		id, err := periodic.Trigger(t.Context(), control, "paused")
		if err != nil {
			t.Fatal(err)
		}
		if info := readTask(t, q, id); info.Kind != "paused" || info.State != falldue.StateOpen {
			t.Errorf("the triggered task is %+v", info)
		}
		wantTasks("after a trigger", 1)
		if err := periodic.Resume(t.Context(), control, "paused"); err != nil {
			t.Fatal(err)
		}
		wantTasks("after the resumption, when the next tick has not come", 1)
		if list, err := periodic.List(t.Context(), q); err != nil || list[0].Paused || !list[0].Next.After(list[0].Now) {
			t.Errorf("the resumed schedule is %+v (error %v)", list, err)
		}
		f.setTick(t, q, time.Second)
		wantTasks("at the next tick", 2)
		for name, change := range map[string]func() error{
			"pause":  func() error { return periodic.Pause(t.Context(), q, "nobody") },
			"resume": func() error { return periodic.Resume(t.Context(), q, "nobody") },
			"trigger": func() error {
				_, err := periodic.Trigger(t.Context(), q, "nobody")
				return err
			},
		} {
			if err := change(); !errors.Is(err, falldue.ErrNotFound) {
				t.Errorf("%s of no schedule: error %v, want ErrNotFound", name, err)
			}
		}
	}},
	{"who paused a schedule, when and why is listed through deploys and losses, until it is resumed", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{})
		kind := falldue.NewKind[string]("paused", falldue.KindConfig{})
		nightly := periodic.Schedule{Name: "nightly", Spec: "@daily", Task: kind.Params("")}
		s := newSchedules(t, q, nightly)
		tickNow(t, s)
		list := func(what string) periodic.Info {
			t.Helper()
			list, err := periodic.List(t.Context(), control)
			if err != nil || len(list) != 1 {
				t.Fatalf("%s there are %d schedules (error %v), want 1", what, len(list), err)
			}
			return list[0]
		}
		if got := list("at first"); got.Paused || !got.PausedAt.IsZero() || got.PausedBy != "" || got.PausedWhy != "" {
			t.Errorf("a schedule that is not paused is %+v", got)
		}
		pause := func(who, why string) error {
			return periodic.Pause(t.Context(), control, "nightly", falldue.Note{Who: who, Why: why})
		}
		const who, why = "Ada Þórsdóttir", "the data are incomplete, see #17;\n'--\x00"
		if err := pause(who, why); err != nil {
			t.Fatal(err)
		}
		first := list("after the pause")
		wantPause := func(what string, got periodic.Info) {
			t.Helper()
			if !got.Paused || got.PausedBy != who || got.PausedWhy != strings.ReplaceAll(why, "\x00", "\uFFFD") || !got.PausedAt.Equal(first.PausedAt) {
				t.Errorf("%s the schedule is %+v", what, got)
			}
		}
		wantPause("after the pause", first)
		if first.PausedAt.Before(first.Defined) || first.PausedAt.After(first.Now) {
			t.Errorf("it was paused at %v; it was stored at %v, and it is %v", first.PausedAt, first.Defined, first.Now)
		}
		if err := pause("another", "another reason"); err != nil {
			t.Fatal(err)
		}
		wantPause("after a second pause", list("after a second pause"))
		nightly.Spec = "@weekly"
		s = newSchedules(t, q, nightly)
		tickNow(t, s)
		if got := list("after a deploy"); got.Spec != "@weekly" {
			t.Errorf("after a deploy the schedule is %+v", got)
		} else {
			wantPause("after a deploy", got)
		}
		if _, err := f.db.ExecContext(t.Context(), "delete from falldue_schedules"); err != nil {
			t.Fatal(err)
		}
		tickNow(t, s)
		wantPause("after a loss", list("after a loss"))
		if err := periodic.Resume(t.Context(), control, "nightly"); err != nil {
			t.Fatal(err)
		}
		if got := list("after the resumption"); got.Paused || !got.PausedAt.IsZero() || got.PausedBy != "" || got.PausedWhy != "" {
			t.Errorf("after the resumption the schedule is %+v", got)
		}
		for name, err := range map[string]error{"Who": pause(strings.Repeat("w", 256), ""), "Why": pause("", strings.Repeat("w", 1<<14+1))} {
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), name+" has") || !strings.Contains(err.Error(), "nightly") {
				t.Errorf("a pause with a %s that is too long: error %v", name, err)
			}
		}
	}},
}

func newSchedules(t *testing.T, q *falldue.Queue, list ...periodic.Schedule) *periodic.Scheduler {
	t.Helper()
	s, err := periodic.New(q, list...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tickNow(t *testing.T, s *periodic.Scheduler) {
	t.Helper()
	if _, err := s.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// setTick makes the next tick of all schedules be one of some time ago, from which their
// intervals count.
func (f *fixture) setTick(t *testing.T, q *falldue.Queue, ago time.Duration) {
	t.Helper()
	id := enqueue(t, q, falldue.NewKind[string]("moment", falldue.KindConfig{}), "", falldue.EnqueueOptions{RunAt: time.Now().Add(-ago)})
	moment := fmt.Sprintf("(select updated_at from falldue_tasks where id = %d)", id)
	if _, err := f.db.ExecContext(t.Context(), "update falldue_schedules set started_at = "+moment+", next_at = "+moment); err != nil {
		t.Fatal(err)
	}
}

// tasksOf returns the tasks of a kind.
func tasksOf(t *testing.T, q *falldue.Queue, kind string) []falldue.TaskInfo {
	t.Helper()
	list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{Kind: kind}, ops.ListOptions{Limit: 10_000}))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
