package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestMain makes the workers that a test starts workers: they are this program.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		main()
		return
	}
	testdb.Main(m)
}

// TestOutage plays the whole script, with short seconds.
func TestOutage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		var out bytes.Buffer
		cfg := settings{dsn: dsn, deliveries: 1500, second: 300 * time.Millisecond, ramp: 10 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		r, err := outage(ctx, cfg, &out)
		if err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		if r.written != 0 {
			t.Errorf("the change of the policy wrote %d rows", r.written)
		}
		// On a busy machine all of them may run before the workers apply the change.
		if r.waiting == 0 || r.moved+r.ran < r.waiting {
			t.Errorf("of %d waiting deliveries %d moved and %d ran", r.waiting, r.moved, r.ran)
		}
		if r.lost == 0 || r.takenOver != r.lost {
			t.Errorf("of %d mails of the killed worker another worker sent %d", r.lost, r.takenOver)
		}
		if r.enqueued <= cfg.deliveries || r.succeeded != r.enqueued {
			t.Errorf("%d of %d tasks succeeded", r.succeeded, r.enqueued)
		}
		// How many requests a second arrive depends on the machine. That a ramp leaves no herd is a test of package ops.
		if r.steps < 10 {
			t.Errorf("the ramp has %d steps", r.steps)
		}
	})
}

// TestChart draws three columns with two events.
func TestChart(t *testing.T) {
	t.Parallel()
	want := []string{
		"requests a second at the partner",
		"  100 ┤ █",
		"      ┤ █",
		"      ┤ █▄",
		"      ┤ ██",
		"      ┤ ██",
		"    0 ┤▁██",
		"       1  2",
		"       0s",
	}
	if got := chart([]int{1, 50, 29}, time.Second/2, []int{0, 3}); !slices.Equal(got, want) {
		t.Errorf("the chart is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
