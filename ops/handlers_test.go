package ops_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestHandlersOfKinds: those of workers that live, are not stopping, and handle the kind.
func TestHandlersOfKinds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	worker := func(handlers int, seen time.Time, stopping bool, kinds ...string) ops.Worker {
		w := ops.Worker{Seen: seen, Now: now, Stopping: stopping, Queues: map[string]ops.WorkerQueue{"a": {Concurrency: handlers}, "b": {Concurrency: 1}}, Kinds: map[string]ops.WorkerKind{}}
		for _, kind := range kinds {
			w.Kinds[kind] = ops.WorkerKind{}
		}
		return w
	}
	workers := []ops.Worker{worker(10, now, false, "mail", "charge"), worker(20, now, false, "charge"), worker(40, now, true, "mail"), worker(80, now.Add(-time.Hour), false, "mail")}
	for kind, want := range map[string]int{"mail": 11, "charge": 32, "": 32, "other": 0} {
		if n := ops.Capacity(workers, kind); n != want {
			t.Errorf("%d handlers of kind %q, want %d", n, kind, want)
		}
	}
}

func TestPaceOfKinds(t *testing.T) {
	t.Parallel()
	p := ops.Pace{PerSecond: 3, Kinds: map[string]float64{"mail": 1, "charge": 2}}
	for kind, want := range map[string]float64{"": 3, "mail": 1, "charge": 2, "other": 0} {
		if n := p.Of(kind); n != want {
			t.Errorf("%v tasks a second of kind %q, want %v", n, kind, want)
		}
	}
}

func TestLoadWithinMinutes(t *testing.T) {
	t.Parallel()
	l := ops.Load{Due: 100, Minutes: []int64{1, 2, 4}, Later: 1000}
	for minutes, want := range map[int]int64{-1: 0, 0: 0, 1: 1, 2: 3, 3: 7, 10: 7} {
		if n := l.Within(minutes); n != want {
			t.Errorf("%d tasks in %d minutes, want %d", n, minutes, want)
		}
	}
}

// TestKnownKinds: those of which tasks wait, and those that live workers handle.
func TestKnownKinds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.enqueue("waits")
		i := b.ops(nil)
		stop := b.start(falldue.Config{}, handle(falldue.KindConfig{}, succeed, "handled"))
		b.workers(i, "a worker", announced(1))
		for kind, want := range map[string]bool{"waits": true, "handled": true, "mistyped": false} {
			if known, err := i.KnowsKind(t.Context(), kind); err != nil || known != want {
				t.Errorf("kind %s is known: %v, error %v", kind, known, err)
			}
		}
		stop()
	})
}
