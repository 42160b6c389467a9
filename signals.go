package falldue

import (
	"context"
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

// signal wakes whoever waits on c, now or when it next waits.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await sleeps for d, until c is signalled, or until ctx ends.
func await(ctx context.Context, c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-c:
	case <-t.C:
	}
}
