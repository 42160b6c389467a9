package signals

import (
	"maps"
	"testing"
	"time"

	"github.com/falldue/falldue/ops"
)

// TestHandlersOfPatternsCountOnce: a worker shares 50 handlers between the queues of a pattern. All of these queues have the
// worker, and the sum of the handlers is right.
func TestHandlersOfPatternsCountOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	worker := ops.Worker{ID: "w", Seen: now, Now: now, Queues: map[string]ops.WorkerQueue{"tenant:*": {Concurrency: 50, Running: 7}, "mail": {Concurrency: 10, Running: 1}}}
	pulse := ops.Pulse{Workers: []ops.Worker{worker}, Queues: []ops.Queue{{Name: "tenant:1"}, {Name: "tenant:2"}, {Name: "other"}}}
	st := &state{Series: map[string][]sample{}}
	st.addWorkers(pulse)
	of := func(m *Metric) map[string]float64 {
		list := map[string]float64{}
		for _, s := range st.Series[m.Name] {
			list[s.Labels[0]] = s.Value
		}
		return list
	}
	for m, want := range map[*Metric]map[string]float64{
		workersGauge:    {"tenant:*": 1, "tenant:1": 1, "tenant:2": 1, "mail": 1, "other": 0},
		handlersRunning: {"tenant:*": 7, "mail": 1, "other": 0},
		handlersLimit:   {"tenant:*": 50, "mail": 10, "other": 0},
	} {
		if got := of(m); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", m.Name, got, want)
		}
	}
}
