package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWatch follows tasks to each of their ends, also one that is older than the watch.
func TestWatch(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("its ids do not ascend")
		}
		b := newBacklog(t, engine)
		old := b.enqueue("again", falldue.EnqueueOptions{Key: "old"})
		b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1 where id = ?"), old)
		begin, end := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		events := make(chan ops.Event, 1000)
		i := b.ops(nil)
		go func() {
			defer close(end)
			if err := i.Watch(ctx, 20*time.Millisecond, func(e ops.Event) error { events <- e; return nil }); err != nil {
				t.Errorf("watch: %v", err)
			}
		}()
		seen := map[int64]map[ops.What]ops.Event{}
		expect := func(id int64, what ops.What) ops.Event {
			t.Helper()
			for {
				if e, ok := seen[id][what]; ok {
					return e
				}
				select {
				case e := <-events:
					if seen[e.ID] == nil {
						seen[e.ID] = map[ops.What]ops.Event{}
					}
					if _, twice := seen[e.ID][e.What]; twice && e.What != ops.Started && e.What != ops.Failed {
						t.Errorf("twice: %+v", e)
					}
					seen[e.ID][e.What] = e
				case <-ctx.Done():
					t.Fatalf("task %d was not seen to be %s; seen is %+v", id, what, seen)
				}
			}
		}
		for seen := false; !seen; { // until the watch has begun
			b.enqueue("marker", falldue.EnqueueOptions{Delay: time.Hour})
			select {
			case <-events:
				seen = true
			default:
			}
		}
		defer b.start(falldue.Config{PollInterval: 20 * time.Millisecond}, func(q *falldue.Queue) {
			for kind, result := range map[string]error{"fails": errors.New("no"), "again": errors.New("no"), "dies": falldue.Discard(errors.New("never")), "waits": falldue.RetryAfter(time.Hour, errors.New("later")), "sleeps": falldue.Snooze(time.Hour), "succeeds": nil, "ends": nil} {
				cfg := falldue.KindConfig{Policy: backoff.Constant(3 * time.Second)}
				switch kind {
				case "succeeds":
					cfg.DoneRetention = time.Hour
				case "again": // its second failure is the last one, however late the watch looks
					cfg.Policy = backoff.ParseDeferred("delay if(n < 2, 3s, 1h)")
				}
				handle(cfg, func(ctx context.Context, _ falldue.Task[json.RawMessage]) error {
					select {
					case <-begin:
						return result
					case <-ctx.Done():
						return ctx.Err()
					}
				}, kind)(q)
			}
		})()
		expect(old, ops.Started)
		ids := map[ops.What]int64{}
		for what, kind := range map[ops.What]string{ops.Failed: "fails", ops.Dead: "dies", ops.Snoozed: "sleeps", ops.Done: "succeeds", ops.Gone: "ends"} {
			ids[what] = b.enqueue(kind, falldue.EnqueueOptions{Key: "k"})
		}
		for _, id := range ids {
			if e := expect(id, ops.Added); e.Key != "k" || e.Queue != "default" || e.Kind == "" || e.At.IsZero() {
				t.Errorf("%+v", e)
			}
			if e := expect(id, ops.Started); e.Worker == "" || e.Attempts != 1 {
				t.Errorf("%+v", e)
			}
		}
		waits := b.enqueue("waits")
		expect(waits, ops.Started)
		cancelled := b.enqueue("ends", falldue.EnqueueOptions{Delay: time.Hour})
		expect(cancelled, ops.Added)
		if err := b.queue.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		expect(cancelled, ops.Cancelled)
		close(begin)
		for what, id := range ids {
			e := expect(id, what)
			if want := map[ops.What]string{ops.Failed: "no", ops.Dead: "never"}[what]; e.Error != want {
				t.Errorf("%+v", e)
			}
		}
		if e := expect(waits, ops.Failed); e.Error != "later" {
			t.Errorf("an attempt that sets the time of the next one: %+v", e)
		}
		if _, snoozed := seen[waits][ops.Snoozed]; snoozed {
			t.Error("a failure was called a snooze")
		}
		if e := expect(old, ops.Failed); e.Error != "no" || e.Attempts != 2 {
			t.Errorf("%+v", e)
		}
		for range 2 { // some looks later
			delete(seen[ids[ops.Failed]], ops.Failed)
			expect(ids[ops.Failed], ops.Failed)
		}
		cancel()
		<-end
		close(events)
		for e := range events {
			if _, twice := seen[e.ID][e.What]; twice && e.What != ops.Started && e.What != ops.Failed {
				t.Errorf("twice: %+v", e)
			}
		}
	})
}

// TestWatchEndsWithTheErrorOfItsFunction: and with none when its context ends.
func TestWatchEndsWithTheErrorOfItsFunction(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("its ids do not ascend")
		}
		b := newBacklog(t, engine)
		i := b.ops(nil)
		ended, stop := context.WithCancel(t.Context())
		stop()
		if err := i.Watch(ended, time.Millisecond, func(ops.Event) error { return nil }); err != nil {
			t.Errorf("a watch whose context has ended returns %v", err)
		}
		enough := errors.New("enough")
		got := make(chan error, 1)
		looked := make(chan struct{})
		go func() {
			close(looked)
			got <- i.Watch(t.Context(), time.Millisecond, func(ops.Event) error { return enough })
		}()
		<-looked
		for {
			b.enqueue("mail")
			select {
			case err := <-got:
				if !errors.Is(err, enough) {
					t.Errorf("error %v", err)
				}
				return
			default:
			}
		}
	})
}
