package store

import (
	"sync/atomic"
	"time"
)

// lookups decides how claims search many lanes on servers with Caps.JSONLateral.
//
// One lateral join is quickest. It reads each lane from the beginning, past the entries of tasks that have left the
// lane, and a long transaction keeps the server from removing these entries. So after a slow join, claims unite a SELECT
// for each lane for a while: such a SELECT begins at the lane's first task.
type lookups struct {
	next atomic.Int64 // when to try a join; nanoseconds since 1970
}

const (
	slowLookup  = 20 * time.Millisecond // in addition to slowLane for each lane
	slowLane    = 500 * time.Microsecond
	lookupPause = time.Minute
)

// quick reports whether the last join was quick, or long ago.
func (l *lookups) quick(now time.Time) bool { return now.UnixNano() >= l.next.Load() }

// took notes how long a join of some lanes took.
func (l *lookups) took(d time.Duration, lanes int, now time.Time) {
	if d > slowLookup+time.Duration(lanes)*slowLane {
		l.next.Store(now.Add(lookupPause).UnixNano())
	}
}
