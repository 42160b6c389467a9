package periodic_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue/periodic"
)

// TestLateSchedules: a schedule is late a minute after its tick, unless it is paused.
func TestLateSchedules(t *testing.T) {
	t.Parallel()
	tick := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	for _, c := range []struct {
		after  time.Duration
		paused bool
		want   bool
	}{{-time.Hour, false, false}, {time.Minute, false, false}, {time.Minute + 1, false, true}, {time.Hour, true, false}} {
		if late := (periodic.Info{Next: tick, Now: tick.Add(c.after), Paused: c.paused}).Late(); late != c.want {
			t.Errorf("%v after its tick, paused %v: late %v", c.after, c.paused, late)
		}
	}
}
