package dash

import (
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// TestEndOfALongSchedule: a task dies after more failures than the preview of a policy has.
func TestEndOfALongSchedule(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"delay 1s; attempts 3":                  "A task dies after 3 attempts, within 2s.",
		"delay 15s; attempts 25":                "A task dies after 25 attempts.",
		"delay 15s; elapsed 24h":                "A task dies after 24h.",
		"delay 15s; attempts 1000; elapsed 24h": "A task dies after 1,000 attempts, or after 24h.",
		"delay 15s":                             "A task is retried indefinitely.",
	} {
		p, err := backoff.Parse(policy)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ops.Preview(p, previewRetries)
		if err != nil {
			t.Fatal(err)
		}
		if got := endText(p, s); got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
}

// TestSteps: the step in effect is the last one that has begun, and the page shows some of the steps to come, and the
// last one.
func TestSteps(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 30, 0, time.UTC)
	o := ops.Override{At: now.Add(-2*time.Minute - 10*time.Second), Until: now.Add(28 * time.Minute)}
	for i := range 10 {
		formula, err := backoff.ParseOverride(fmt.Sprintf("original + %dm", i))
		if err != nil {
			t.Fatal(err)
		}
		o.Steps = append(o.Steps, ops.OverrideStep{After: time.Duration(i) * time.Minute, Formula: formula})
	}
	s := stepsOf(o, now)
	if s.Number != 3 || s.Of != 10 || s.Now.Formula != o.Steps[2].Formula.String() || now.Sub(s.Now.At) != 10*time.Second || !s.End.Equal(o.Until) {
		t.Errorf("the step in effect is %+v", s)
	}
	if len(s.Next) != shownSteps || s.Next[0].At.Sub(now) != 50*time.Second || s.More != 2 || s.Last == nil || s.Last.Formula != o.Steps[9].Formula.String() || s.Last.Gap != time.Minute {
		t.Errorf("the steps to come are %+v", s)
	}
	if s := stepsOf(o, now.Add(time.Hour)); s.Number != 10 || s.Next != nil || s.Last != nil || s.More != 0 {
		t.Errorf("after the last step: %+v", s)
	}
	o.Steps = o.Steps[:1]
	if s := stepsOf(o, now); s != nil {
		t.Errorf("an override with one step has %+v", s)
	}
}
