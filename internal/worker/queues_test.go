package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// TestQueuesOfPatternsComeAndGo: a worker has a poller for each queue that matches a pattern and has tasks, until the
// queue has had none for a while.
func TestQueuesOfPatternsComeAndGo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, engine)
		w := idleOn(t.Context(), s, Config{Queues: map[string]Queue{"mail": {Concurrency: 1}, "tenant:*": {Concurrency: 2}, "tenant:eu:*": {Concurrency: 3}, "tenant:big": {Concurrency: 4}}})
		if got, want := w.queues.settings.prefixes(), []string{"tenant:"}; !slices.Equal(got, want) {
			t.Errorf("it lists queues that begin with %q, want %q", got, want)
		}
		var ids []int64
		for _, queue := range []string{"a", "tenant:1", "tenant:big", "tenant:eu:2", "tenant:", "z"} {
			id, err := s.Enqueue(t.Context(), nil, []store.Entry{{Queue: queue, Kind: "k", Payload: "1"}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id...)
		}
		list := func(after string, want ...string) {
			t.Helper()
			if err := w.queues.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.pollers.Queues(); !slices.Equal(got, want) {
				t.Errorf("%s: pollers of %q, want %q", after, got, want)
			}
		}
		list("after enqueues", "mail", "tenant:1", "tenant:big", "tenant:eu:2")
		for queue, handlers := range map[string]int{"mail": 1, "tenant:1": 2, "tenant:eu:2": 3, "tenant:big": 4} {
			if n := w.pollers.Of(queue).Budget.Limit; n != handlers {
				t.Errorf("queue %s has %d handlers, want %d", queue, n, handlers)
			}
		}
		if w.pollers.Hint("other", store.Lane{Kind: "k"}, 0) || !w.pollers.Hint("tenant:3", store.Lane{Kind: "k"}, 0) {
			t.Error("the worker wants a queue that does not match, or not one that does")
		}
		if wanted := w.queues.wanted.take(); !slices.Equal(wanted, []string{"tenant:3"}) {
			t.Errorf("queues %q are wanted, want tenant:3", wanted)
		}
		if _, err := s.Act(t.Context(), store.ActParams{Action: store.ActDelete, IDs: ids}); err != nil {
			t.Fatal(err)
		}
		list("soon after the last task", "mail", "tenant:1", "tenant:big", "tenant:eu:2")
		stopped := false
		w.queues.found["tenant:1"].seen = time.Now().Add(-keepEmpty)
		w.queues.found["tenant:1"].stop = func() { stopped = true }
		list("a while after the last task", "mail", "tenant:big", "tenant:eu:2")
		if !stopped {
			t.Error("the poller of a queue that is gone was not stopped")
		}
	})
}
