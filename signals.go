package falldue

import (
	"time"

	"github.com/falldue/falldue/internal/store"
)

// signals is how the rest of a process, and other processes through it, wake the
// pollers of a worker.
type signals map[string]*poller // by queue

// hint tells the poller of a queue that a lane has a task that falls due after
// wait.
func (s signals) hint(queue string, at store.Lane, wait time.Duration) {
	if p := s[queue]; p != nil {
		p.hint(at, wait)
	}
}

// look makes all pollers look for tasks at once.
func (s signals) look() {
	for _, p := range s {
		p.look()
	}
}

// room wakes the pollers that wait until there is room for more tasks.
func (s signals) room() {
	for _, p := range s {
		signal(p.freed)
	}
}
