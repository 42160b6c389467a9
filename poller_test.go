package falldue

import (
	"testing"
	"time"
)

// TestStuckLanesAreNotSweptForAtOnce: a lane whose first task no claim will ever
// find must not keep the poller busy.
func TestStuckLanesAreNotSweptForAtOnce(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		p := newPoller(&worker{}, "default", 1)
		at, now := lane{state: "open", kind: "k"}, time.Now()
		p.lanes[at] = front{due: now.Add(-time.Second), stuck: stuck}
		p.sweepAt = now.Add(time.Hour)
		p.learn([]lane{at}, nil, false, now, nil)
		if soon := p.sweepAt.Before(now.Add(time.Minute)); soon == stuck {
			t.Errorf("stuck %v: the next sweep is soon: %v", stuck, soon)
		}
		if len(p.lanes) != 0 {
			t.Errorf("stuck %v: the lane is still thought to be due", stuck)
		}
	}
}
