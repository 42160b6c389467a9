package ops_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func ExampleStampede() {
	outage := ops.Outage{Failures: 100, Retries: 5}
	for _, policy := range []string{"5m", "delay 5m; jitter 10m"} {
		p, err := backoff.Parse(policy)
		if err != nil {
			fmt.Println(err)
			return
		}
		h, err := ops.Stampede(context.Background(), p, outage)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: at most %d retries a minute: %t\n", policy, 20, h.Peak <= 20)
	}
	// Output:
	// 5m: at most 20 retries a minute: false
	// delay 5m; jitter 10m: at most 20 retries a minute: true
}

// TestStampede: of tasks that fail together, all retries come together without a
// jitter, and never do with one.
func TestStampede(t *testing.T) {
	t.Parallel()
	o := ops.Outage{Failures: 100, Retries: 5}
	h, err := ops.Stampede(t.Context(), parse(t, "5m"), o)
	if err != nil {
		t.Fatal(err)
	}
	if h.Peak != 100 || h.PeakAt != 5*time.Minute || len(h.Load) != 26 || h.Idle != 21.0/26 || h.GivenUp != 0 {
		t.Errorf("constant: %d at %v, %d minutes, idle %v, given up %d", h.Peak, h.PeakAt, len(h.Load), h.Idle, h.GivenUp)
	}
	for _, preset := range []string{"visualization_sidekiq", "visualization_buckets"} {
		jittered, err := ops.Stampede(t.Context(), parse(t, preset), o)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := ops.Stampede(t.Context(), parse(t, preset).WithJitter("0"), o)
		if err != nil {
			t.Fatal(err)
		}
		if plain.Peak < o.Failures || jittered.Peak >= plain.Peak || jittered.Idle >= plain.Idle {
			t.Errorf("%s: peak %d, idle %.2f; without jitter %d and %.2f", preset, jittered.Peak, jittered.Idle, plain.Peak, plain.Idle)
		}
	}
}

// TestStampedeKeepsToThePolicy: each wait is in the policy's band, all retries are
// counted, the same seed gives the same picture, and limits hold.
func TestStampedeKeepsToThePolicy(t *testing.T) {
	t.Parallel()
	p := parse(t, "delay 10s * n; jitter 20s; attempts 4; elapsed 100s")
	o := ops.Outage{Failures: 500, Retries: 10, Bucket: time.Second, Seed: 7}
	h, err := ops.Stampede(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range h.Load {
		total += n
	}
	if all := h.All(); len(all) != total || total == 0 || h.GivenUp != 500 {
		t.Errorf("%d retries, %d counted, %d given up", len(all), total, h.GivenUp)
	}
	for _, task := range h.Retries {
		before := time.Duration(0)
		for k, at := range task {
			if wait := at - before; k >= 3 || at > 100*time.Second || wait < time.Duration(k+1)*10*time.Second || wait > time.Duration(k+3)*10*time.Second {
				t.Fatalf("retry %d at %v after a wait of %v", k+1, at, wait)
			}
			before = at
		}
	}
	again, err := ops.Stampede(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Seed++
	other, err := ops.Stampede(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(again) != fmt.Sprint(h) || fmt.Sprint(other) == fmt.Sprint(h) {
		t.Error("the seed does not make the jitter")
	}
}

func TestStampedeWidensItsBuckets(t *testing.T) {
	t.Parallel()
	h, err := ops.Stampede(t.Context(), parse(t, "300d"), ops.Outage{Failures: 1, Retries: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Load) > 100_000 || h.Bucket != 16*time.Minute {
		t.Errorf("%d buckets of %v", len(h.Load), h.Bucket)
	}
}

func TestStampedeRefuses(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]ops.Outage{
		"ops: 0 failures: must be 1 to 1,000,000": {Retries: 1},
		"ops: 1001 retries: must be 1 to 1,000":   {Failures: 1, Retries: 1001},
		"at most 10,000,000 retries in all":       {Failures: 1_000_000, Retries: 11},
		"a bucket of -1s: must not be negative":   {Failures: 1, Retries: 1, Bucket: -time.Second},
	} {
		if _, err := ops.Stampede(t.Context(), parse(t, "1s"), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: error %v, want %q", o, err, says)
		}
	}
	if _, err := ops.Stampede(t.Context(), parse(t, "1s").WithMaxAttempts(-1), ops.Outage{Failures: 1, Retries: 1}); err == nil {
		t.Error("an invalid policy is taken")
	}
}
