package ops

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/falldue/falldue/backoff"
)

// Slow returns the override that multiplies all delays by a factor, and leaves the jitter and the limits unchanged. The
// factor must be above 0 and up to 1,000,000.
func Slow(factor float64) (backoff.Override, error) {
	if !(factor > 0 && factor <= 1e6) {
		return backoff.Override{}, fmt.Errorf("ops: the factor %v: must be above 0 and at most 1,000,000", factor)
	}
	return backoff.ParseOverride(strconv.FormatFloat(factor, 'f', -1, 64) + " * original")
}

// Hold returns the override that stops all retries. New tasks still run. The override removes the limit on elapsed
// time, so that no task dies because of the wait. Pass the override to [Ops.SetPolicy] with an Until.
func Hold() backoff.Override {
	held, _ := backoff.ParseOverride("36500d; elapsed 0s") // TestHold parses it
	return held
}

// IsHold reports whether o is the override that [Hold] returns.
func IsHold(o backoff.Override) bool { return o.String() == Hold().String() }

// OverrideName returns "hold" for the override that [Hold] returns, and the text of any other override.
func OverrideName(o backoff.Override) string {
	if IsHold(o) {
		return "hold"
	}
	return o.String()
}

// StepText returns the number of an override's current step, such as " (step 2 of 5)". It returns "" if the override
// has only one step.
func StepText(o Override) string {
	if len(o.Steps) < 2 {
		return ""
	}
	i := slices.IndexFunc(o.Steps, func(s OverrideStep) bool { return s.Formula.String() == o.Formula.String() })
	return fmt.Sprintf(" (step %d of %d)", i+1, len(o.Steps))
}
