package falldue

import (
	"context"
	"time"
)

// NewOn is like New, on a server that the test has probed or invented.
var NewOn = newQueue

// KeepPolicies does what a worker does each minute.
func KeepPolicies(ctx context.Context, q *Queue) error { return q.policies.Restore(ctx) }

// ForgetWhenStored makes a process check each policy at its next enqueue, as it does
// after a minute.
func ForgetWhenStored(q *Queue) {
	k := q.policies
	k.Mu.Lock()
	defer k.Mu.Unlock()
	for key, p := range k.Known {
		p.At = time.Time{}
		k.Known[key] = p
	}
}
