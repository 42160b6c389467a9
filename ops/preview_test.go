package ops_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func ExamplePreview() {
	s, err := ops.Preview(backoff.Zizq(), 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range s.Retries[:3] {
		fmt.Printf("after %d failures: %v to %v\n", r.N, r.Delay, r.Delay+r.Jitter)
	}
	fmt.Printf("given up after %d attempts, %.0f to %.0f days\n", s.Most, s.Earliest.Hours()/24, s.Latest.Hours()/24)
	// Output:
	// after 1 failures: 16s to 46s
	// after 2 failures: 31s to 1m31s
	// after 3 failures: 1m36s to 3m6s
	// given up after 26 attempts, 25 to 25 days
}

func parse(t *testing.T, text string) backoff.Policy {
	t.Helper()
	p, err := backoff.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPreview(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for policy, want := range map[string]ops.Schedule{
		"delay 10s; attempts 3": {
			Retries: []ops.Retry{{1, 10 * s, 0, 10 * s, 10 * s}, {2, 10 * s, 0, 20 * s, 20 * s}},
			Fewest:  3, Most: 3, Earliest: 20 * s, Latest: 20 * s, DelayLimit: 10 * s, WaitLimit: 10 * s,
		},
		"delay 10s * n; jitter 5s; attempts 3": {
			Retries: []ops.Retry{{1, 10 * s, 5 * s, 10 * s, 15 * s}, {2, 20 * s, 5 * s, 30 * s, 40 * s}},
			Fewest:  3, Most: 3, Earliest: 30 * s, Latest: 40 * s,
		},
		// With the longest waits the third attempt, at 30s, is the last one, with the shortest the fourth.
		"delay 10s; jitter 5s; elapsed 35s": {
			Retries: []ops.Retry{{1, 10 * s, 5 * s, 10 * s, 15 * s}, {2, 10 * s, 5 * s, 20 * s, 30 * s}, {3, 10 * s, 5 * s, 30 * s, 35 * s}},
			Fewest:  3, Most: 4, Earliest: 20 * s, Latest: 35 * s, DelayLimit: 10 * s, WaitLimit: 15 * s,
		},
		"delay 10s": {
			Retries: []ops.Retry{
				{1, 10 * s, 0, 10 * s, 10 * s}, {2, 10 * s, 0, 20 * s, 20 * s}, {3, 10 * s, 0, 30 * s, 30 * s}, {4, 10 * s, 0, 40 * s, 40 * s},
			},
			DelayLimit: 10 * s, WaitLimit: 10 * s,
		},
		"delay 10s; attempts 1": {Fewest: 1, Most: 1, DelayLimit: 10 * s, WaitLimit: 10 * s},
	} {
		got, err := ops.Preview(parse(t, policy), 4)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
	}
}

// TestPreviewOfTheLongestDelays: times that no duration can hold are the longest
// duration.
func TestPreviewOfTheLongestDelays(t *testing.T) {
	t.Parallel()
	got, err := ops.Preview(parse(t, "36500d"), 5)
	if err != nil {
		t.Fatal(err)
	}
	if last := got.Retries[4]; last.Earliest != math.MaxInt64 || last.Latest != math.MaxInt64 {
		t.Errorf("the fifth retry after 100 years each is at %v to %v", last.Earliest, last.Latest)
	}
}

// TestPreviewOfLimits: what delays and the longest waits tend to, if anything.
func TestPreviewOfLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]time.Duration{
		"arctan":                       {24 * time.Hour, 24 * time.Hour},
		"sigmoid":                      {24 * time.Hour, 24 * time.Hour},
		"euler":                        {24 * time.Hour, 24 * time.Hour},
		"5m":                           {5 * time.Minute, 5 * time.Minute},
		"full_jitter":                  {0, 5 * time.Minute},
		"equal_jitter":                 {150 * time.Second, 5 * time.Minute},
		"1h + 1h / n; jitter 30s * n":  {time.Hour, 0},
		"zizq":                         {},
		"1m * n":                       {},
		"1s * ln(n)":                   {},
		"36500d":                       {},
		"30d; jitter 1s * min(n, 100)": {30 * 24 * time.Hour, 30*24*time.Hour + 100*time.Second},
	} {
		s, err := ops.Preview(backoff.ParseDeferred(text), 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]time.Duration{s.DelayLimit.Round(time.Second), s.WaitLimit.Round(time.Second)}; got != want {
			t.Errorf("%s tends to %v, want %v", text, got, want)
		}
	}
}

func TestPreviewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := ops.Preview(parse(t, "1s").WithMaxAttempts(-1), 1); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("an invalid policy: error %v", err)
	}
	if _, err := ops.Preview(parse(t, "1s"), 0); err == nil || err.Error() != "ops: 0 retries: must be 1 to 1000000" {
		t.Errorf("no retries: error %v", err)
	}
}
