package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWhyLimits has a case for each form of a limit of a queue and of a kind that admits no more.
func TestWhyLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan int64, 10), make(chan struct{})
		block := blocking(began, end)
		limits := func(l falldue.Limit) []falldue.Limit { return []falldue.Limit{l} }
		queues := map[string]falldue.QueueConfig{
			"default": {}, "few": {Limits: limits(falldue.AtMost(2))}, "customers": {Limits: limits(falldue.AtMost(1).PerKey())},
			"slow": {Limits: limits(falldue.Rate(2, time.Hour))}, "bursts": {Limits: limits(falldue.Rate(4, time.Hour).Burst(2))},
			"callers": {Limits: limits(falldue.Rate(4, time.Hour).Burst(1).PerKey())},
		}
		defer b.start(falldue.Config{Concurrency: 20, Queues: queues}, func(q *falldue.Queue) {
			handle(falldue.KindConfig{}, block, "mail")(q)
			handle(falldue.KindConfig{Limits: limits(falldue.Rate(2, time.Hour).Burst(3))}, block, "burst")(q)
			handle(falldue.KindConfig{Limits: limits(falldue.AtMost(10))}, block, "charge")(q)
		})()
		defer close(end)
		b.workers(i, "the worker", announced(1))
		run := func(n int, kind string, opts falldue.EnqueueOptions) (ids []int64) {
			t.Helper()
			for range n {
				b.enqueue(kind, opts)
				ids = append(ids, <-began)
			}
			slices.Sort(ids)
			return ids
		}

		for _, c := range []struct {
			queue, kind, key, limit, owner string
			admits                         int
			next                           time.Duration // until another one may start, or 0 if nobody knows
			known                          bool          // whether the tasks that have the permits are
		}{
			{"few", "mail", "", "AtMost(2)", "queue few", 2, 0, true},
			{"customers", "mail", "seven", "AtMost(1).PerKey()", "queue customers", 1, 0, true},
			{"slow", "mail", "", "Rate(2, 1h0m0s)", "queue slow", 2, time.Hour, true},
			{"bursts", "mail", "", "Rate(4, 1h0m0s).Burst(2)", "queue bursts", 2, 15 * time.Minute, false},
			{"callers", "mail", "seven", "Rate(4, 1h0m0s).Burst(1).PerKey()", "queue callers", 1, 15 * time.Minute, false},
			{"default", "burst", "", "Rate(2, 1h0m0s).Burst(3)", "kind burst", 3, 30 * time.Minute, false},
		} {
			t.Run(c.limit+" of "+c.owner, func(t *testing.T) {
				opts := falldue.EnqueueOptions{Queue: c.queue, Key: c.key}
				before := conditionOf[ops.WhyLimit](t, b.why(i, b.enqueue(c.kind, falldue.EnqueueOptions{Queue: c.queue, Key: c.key, Delay: 5 * time.Hour})))
				if !before.Holds() || before.Room != c.admits || len(before.Taken) != 0 || !before.Free.IsZero() {
					t.Errorf("before it is used up it is %+v", before)
				}
				ids := run(c.admits, c.kind, opts)
				w := b.why(i, b.enqueue(c.kind, opts))
				got := onlyReason[ops.WhyLimit](t, w)
				if got.Limit != c.limit || got.Owner != c.owner || got.PerKey != (c.key != "") || got.Room != 0 {
					t.Errorf("%+v", got)
				}
				if slices.Sort(got.Taken); c.known && !slices.Equal(got.Taken, ids) || !c.known && len(got.Taken) > 0 {
					t.Errorf("taken by %v, want %v", got.Taken, ids)
				}
				if next := w.Next(); c.next == 0 && !next.IsZero() || c.next > 0 && !b.near(next, w.Task.Now.Add(c.next)) {
					t.Errorf("it can run at %v, want in %v after %v", next, c.next, w.Task.Now)
				}
				if c.key == "" {
					return
				}
				other := b.why(i, b.enqueue(c.kind, falldue.EnqueueOptions{Queue: c.queue, Key: "eight", Delay: 5 * time.Hour}))
				if c := conditionOf[ops.WhyLimit](t, other); !c.Holds() || c.Room != 1 {
					t.Errorf("of another key: %+v", c)
				}
				for _, c := range b.why(i, b.enqueue(c.kind, falldue.EnqueueOptions{Queue: c.queue, Delay: 5 * time.Hour})).Conditions {
					if limit, ok := c.(ops.WhyLimit); ok {
						t.Errorf("a task without a key has the limit %+v", limit)
					}
				}
			})
		}

		t.Run("a limit of the queue and one of the kind", func(t *testing.T) {
			var got []string
			for _, c := range b.why(i, b.enqueue("charge", falldue.EnqueueOptions{Queue: "few"})).Conditions {
				if limit, ok := c.(ops.WhyLimit); ok {
					got = append(got, fmt.Sprintf("%s of %s admits %d: %v", limit.Limit, limit.Owner, limit.Room, limit.Holds()))
				}
			}
			if want := []string{"AtMost(2) of queue few admits 0: false", "AtMost(10) of kind charge admits 10: true"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	})
}

// TestWhyPauses has a case for each subject of a pause.
func TestWhyPauses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{Queues: map[string]falldue.QueueConfig{"default": {}, "images": {}}}, handle(falldue.KindConfig{}, succeed, "mail", "report"))
		own, other := parse(t, "delay 30m"), parse(t, "delay 20m")
		task, err := b.queue.Task(t.Context(), b.enqueue("mail", falldue.EnqueueOptions{Queue: "images", Key: "seven", Policy: own}))
		if err != nil {
			t.Fatal(err)
		}
		// Each of these differs from that task in one thing.
		others := map[string]int64{
			"queue": b.enqueue("mail", falldue.EnqueueOptions{Key: "seven", Policy: own}), "kind": b.enqueue("report", falldue.EnqueueOptions{Queue: "images", Key: "seven", Policy: own}),
			"key": b.enqueue("mail", falldue.EnqueueOptions{Queue: "images", Key: "eight", Policy: own}), "policy": b.enqueue("mail", falldue.EnqueueOptions{Queue: "images", Key: "seven", Policy: other}),
		}
		all := falldue.Subject{Queue: "images", Kind: "mail", Key: "seven", Policy: task.Policy}
		for name, c := range map[string]struct {
			subject falldue.Subject
			spares  []string
		}{
			"its queue":             {falldue.Subject{Queue: all.Queue}, []string{"queue"}},
			"its kind":              {falldue.Subject{Kind: all.Kind}, []string{"kind"}},
			"its key":               {falldue.Subject{Key: all.Key}, []string{"key"}},
			"its policy":            {falldue.Subject{Policy: all.Policy}, []string{"policy"}},
			"its kind in its queue": {falldue.Subject{Queue: all.Queue, Kind: all.Kind}, []string{"queue", "kind"}},
			"all of it":             {all, []string{"queue", "kind", "key", "policy"}},
		} {
			t.Run(name, func(t *testing.T) {
				until := time.Now().Add(time.Hour)
				if err := b.queue.Pause(t.Context(), c.subject, falldue.PauseOptions{Until: until, Note: falldue.Note{Who: "ann", Why: "closed"}}); err != nil {
					t.Fatal(err)
				}
				w := b.why(i, task.ID)
				if got := onlyReason[ops.WhyPause](t, w); len(got.Pauses) != 1 || got.Pauses[0].Subject != c.subject || !b.near(w.Next(), until) {
					t.Errorf("%+v, next %v", got, w.Next())
				}
				for differs, id := range others {
					if got := conditionOf[ops.WhyPause](t, b.why(i, id)); got.Holds() != slices.Contains(c.spares, differs) {
						t.Errorf("the task that differs in its %s: %+v", differs, got)
					}
				}
				if err := b.queue.Resume(t.Context(), c.subject); err != nil {
					t.Fatal(err)
				}
				if w := b.why(i, task.ID); !w.Runnable() {
					t.Errorf("resumed: %+v", w.Conditions)
				}
			})
		}
	})
}

// fleet leaves the row of a worker that lives for an hour, and runs nothing.
func (b backlog) fleet(i *ops.Ops, cfg falldue.Config, handle func(*falldue.Queue)) {
	b.t.Helper()
	stop := b.start(cfg, handle)
	b.workers(i, "the worker", announced(1))
	b.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, done, failed, running) select 'idle', started_at, seen_at, info, 0, 0, 0 from falldue_workers")
	stop()
	b.shift("workers", "seen_at", -time.Hour, "id = 'idle'")
}

// TestWorkersDifferInALimit: a limit that two releases define differently is one limit, and holds no task that a worker
// admits.
func TestWorkersDifferInALimit(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan int64, 10), make(chan struct{})
		block := blocking(began, end)
		var stops []func()
		defer func() {
			close(end)
			for _, stop := range stops {
				stop()
			}
		}()
		release := func(limits []falldue.Limit, concurrency int, others ...string) {
			stops = append(stops, b.start(falldue.Config{Concurrency: concurrency}, func(q *falldue.Queue) {
				handle(falldue.KindConfig{Limits: limits}, block, "mail")(q)
				handle(falldue.KindConfig{}, block, others...)(q)
			}))
		}
		release([]falldue.Limit{falldue.AtMost(1), falldue.InOrder()}, 5)
		b.workers(i, "one worker", announced(1))
		b.enqueue("mail")
		running := <-began
		release([]falldue.Limit{falldue.AtMost(2), falldue.InOrder().HaltOnDeath()}, 1, "busy")
		workers := b.workers(i, "two workers", announced(2))
		b.enqueue("busy")
		<-began

		id := b.enqueue("mail", falldue.EnqueueOptions{Key: "a"})
		w := b.why(i, id)
		c := conditionOf[ops.WhyLimit](t, w)
		if !c.Holds() || !c.Admitted || c.Limit != "AtMost(2)" || c.Room != 1 || len(c.Definitions) != 2 || len(c.Without) != 0 || !slices.Equal(c.Taken, []int64{running}) {
			t.Errorf("the limit is %+v", c)
		}
		for _, d := range c.Definitions {
			if len(d.Workers) != 1 || d.Room != map[string]int{"AtMost(1)": 0, "AtMost(2)": 1}[d.Text] {
				t.Errorf("a definition is %+v", d)
			}
			if text := d.Text + " on " + d.Workers[0]; !strings.Contains(c.Describe(w.Task), text) {
				t.Errorf("%q does not have %q", c.Describe(w.Task), text)
			}
		}
		if countOf[ops.WhyLimit](w) != 1 || countOf[ops.WhySequence](w) != 1 {
			t.Errorf("%d limits and %d sequences", countOf[ops.WhyLimit](w), countOf[ops.WhySequence](w))
		}
		if page, err := i.Tasks(t.Context(), ops.Filter{Kind: "mail", Phase: falldue.PhaseDue}); err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != id {
			t.Errorf("the due tasks are %+v, error %v", page.Tasks, err)
		}
		b.shift("tasks", "updated_at", 10*time.Minute, fmt.Sprint("id = ", id))
		if list, err := i.Overdue(t.Context(), 0); err != nil || len(list) != 1 || list[0].Limit != "" {
			t.Errorf("overdue are %+v, error %v", list, err)
		}
		limits, err := i.Limits(t.Context(), workers)
		if err != nil || len(limits) != 2 || limits[0].Text != "AtMost(2)" || limits[0].Taken() != 1 || limits[0].Full() || len(limits[0].Definitions) != 2 || len(limits[0].Without) != 0 || len(limits[1].Definitions) != 2 {
			t.Errorf("the limits are %+v, error %v", limits, err)
		}

		release(nil, 5)
		<-began // the task runs on the worker without limits
		b.workers(i, "three workers", announced(3))
		later := b.enqueue("mail", falldue.EnqueueOptions{Key: "a", Delay: time.Hour})
		w = b.why(i, later)
		c, sequence := conditionOf[ops.WhyLimit](t, w), conditionOf[ops.WhySequence](t, w)
		if !c.Holds() || c.Room != 1 || len(c.Without) != 1 || !sequence.Holds() || !slices.Equal(sequence.Without, c.Without) || !strings.Contains(c.Describe(w.Task), "no such limit on "+c.Without[0]) {
			t.Errorf("the limits are %+v and %+v", c, sequence)
		}
	})
}

func countOf[C ops.Condition](w ops.Why) (n int) {
	for _, c := range w.Conditions {
		if _, is := c.(C); is {
			n++
		}
	}
	return n
}
