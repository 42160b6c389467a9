package dash

import (
	"testing"

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
		"delay 15s":                             "A task is retried without an end.",
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
