package falldue

import (
	"time"

	"github.com/falldue/falldue/internal/store"
)

// signals wakes the pollers of a worker. The pollers are by the names of their
// queues.
type signals map[string]*poller

// hint notifies the poller of a queue of a task in a lane that falls due after
// wait.
func (s signals) hint(queue string, at store.Lane, wait time.Duration) {
	if p := s[queue]; p != nil {
		p.hint(at, wait)
	}
}

// sweepNow makes all pollers sweep at once.
func (s signals) sweepNow() {
	for _, p := range s {
		p.sweepNow()
	}
}

// wakeWaiting wakes the pollers that wait for room for more tasks.
func (s signals) wakeWaiting() {
	for _, p := range s {
		signal(p.budget.freed)
	}
}
