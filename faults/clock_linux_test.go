//go:build amd64 || arm64

package faults

import (
	"os"
	"os/exec"
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

// TestClockOfAProcessJumps runs itself again in another process, since its clock
// stays wrong.
func TestClockOfAProcessJumps(t *testing.T) {
	const child = "FALLDUE_TEST_CLOCK_JUMPS"
	if os.Getenv(child) == "" {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClockOfAProcessJumps$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	began := time.Now()
	jumpClock(1)
	days := map[string]bool{}
	for len(days) < 3 { // 36 hours back and forth are more days than that
		now := time.Now()
		days[now.Format(time.DateOnly)] = true
		if took := now.Sub(began); took < 0 || took > time.Minute {
			t.Fatalf("%v seem to have passed, %d days were seen", took, len(days))
		}
	}
	if off := trueTime().Round(0).Sub(began.Round(0)); off < 0 || off > time.Minute {
		t.Errorf("the true time has jumped by %v", off)
	}
}
