package ops_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWhyAllHandlersAreBusy: a task that is due waits for a handler of its queue, as the workers
// that handle it have announced, and runs when there is another worker. Doctor says so of tasks
// that are overdue.
func TestWhyAllHandlersAreBusy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan struct{}, 10), make(chan struct{})
		defer b.start(falldue.Config{
			Name: "busy", Concurrency: 2, MaxPrefetch: -1, Queues: map[string]falldue.QueueConfig{"default": {}, "images": {Concurrency: 3}},
		}, handle(falldue.KindConfig{}, func(context.Context, falldue.Task[json.RawMessage]) error {
			began <- struct{}{}
			<-end
			return nil
		}, "mail"))()
		defer close(end)
		b.workers(i, "the worker", announced(1))
		for range 2 {
			b.enqueue("mail")
			<-began
		}
		id := b.enqueue("mail")
		list := b.workers(i, "the busy handlers", func(list []ops.Worker) bool { return len(list) == 1 && list[0].Running == 2 })
		b.released(id)

		w := b.why(i, id)
		c := onlyReason[ops.WhyHandlers](t, w)
		if c.Running != 2 || c.Concurrency != 2 || c.Queue != "default" || len(c.Workers) != 1 || c.Workers[0].Worker != list[0].ID || c.Age() > time.Minute || !w.Next().IsZero() {
			t.Errorf("%+v, next %v", c, w.Next())
		}
		if says := w.Conclusion(); !strings.Contains(says, "all handlers for it are busy") {
			t.Errorf("it says %q", says)
		}
		if busy := ops.BusyQueues(list); len(busy) != 1 || busy[0].Queue != "default" || busy[0].Running != 2 {
			t.Errorf("busy are %+v", busy)
		}
		b.shift("tasks", "updated_at", 2*time.Minute, "claimed_by = ''")
		if f := b.findings(i)["overdue"]; len(f) != 1 || !strings.Contains(f[0].Text, "1 task of kind mail in queue default overdue") || !strings.Contains(f[0].Text, "; all 2 handlers for the kind were busy on 1 worker up to ") || !strings.Contains(f[0].Advice, "Concurrency") {
			t.Errorf("overdue: %+v", f)
		}

		// Busy handlers do not hide when a task will be due, and those of another queue do not count.
		w = b.why(i, b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour}))
		if c := conditionOf[ops.WhyHandlers](t, w); c.Holds() || !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
			t.Errorf("a scheduled task: %+v, next %v", c, w.Next())
		}
		w = b.why(i, b.enqueue("mail", falldue.EnqueueOptions{Queue: "images", Delay: time.Hour}))
		if c := conditionOf[ops.WhyHandlers](t, w); !c.Holds() || c.Running != 0 || c.Concurrency != 3 {
			t.Errorf("in another queue: %+v", c)
		}

		// A worker that handles another kind does not help, and one with a free handler does.
		defer b.start(falldue.Config{Name: "other"}, handle(falldue.KindConfig{}, succeed, "report"))()
		b.workers(i, "the other worker", announced(2))
		onlyReason[ops.WhyHandlers](t, b.why(i, id))
		defer b.start(falldue.Config{Name: "free"}, handle(falldue.KindConfig{}, succeed, "mail"))()
		list = b.workers(i, "the free worker", announced(3))
		later := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour})
		if c := conditionOf[ops.WhyHandlers](t, b.why(i, later)); !c.Holds() || c.Running != 2 || c.Concurrency != 12 || len(ops.BusyQueues(list)) != 0 {
			t.Errorf("with a free worker: %+v, busy are %+v", c, ops.BusyQueues(list))
		}
	})
}
