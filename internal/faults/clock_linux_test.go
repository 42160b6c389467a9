//go:build amd64 || arm64

package faults

import (
	"testing"
	"time"
)

func TestTimesAreShiftedByTheTimeOfDayAlone(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-36 * time.Hour, 0, 36 * time.Hour} {
		now := time.Now()
		then := shifted(now, by)
		if got := then.Round(0).Sub(now.Round(0)); got != by {
			t.Errorf("the time of day moved by %v, want %v", got, by)
		}
		if got := then.Sub(now); got != 0 {
			t.Errorf("the monotonic reading moved by %v", got)
		}
	}
}
