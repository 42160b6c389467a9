package falldue

import (
	"context"
	"time"
)

// NewOn is like New, on a server that the test has probed or invented.
var NewOn = newQueue

// KeepPolicies does what a worker does each minute.
func KeepPolicies(ctx context.Context, q *Queue) error { return q.keeper.restore(ctx) }

// ForgetWhenStored makes a process check each policy at its next enqueue, as it does
// after a minute.
func ForgetWhenStored(q *Queue) {
	k := q.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, p := range k.known {
		p.at = time.Time{}
		k.known[key] = p
	}
}
