package control

import (
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
)

// TestLimitSetForNamesTheOverrideOnlyIfItSetsTheLimit: if the code's limit makes a task dead, an override of
// the delay is not blamed.
func TestLimitSetForNamesTheOverrideOnlyIfItSetsTheLimit(t *testing.T) {
	t.Parallel()
	code := Compile(backoff.Constant(time.Minute).WithMaxAttempts(5))
	for _, c := range []struct {
		most int
		want string
	}{{5, ""}, {3, "kind:mail"}} {
		set := Compile(backoff.Constant(time.Hour).WithMaxAttempts(c.most))
		set.original, set.SetFor = code, "kind:mail"
		if got := set.LimitSetFor(); got != c.want {
			t.Errorf("a limit of %d is set for %q, want %q", c.most, got, c.want)
		}
	}
	if got := code.LimitSetFor(); got != "" {
		t.Errorf("the code's limit is set for %q", got)
	}
}
