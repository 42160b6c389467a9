package ops_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/tasktest"
)

func ExampleSimulate() {
	outage := ops.Scenario{Outage: 10 * time.Minute, PerSecond: 5, Handler: 200 * time.Millisecond, Workers: 4}
	for _, policy := range []string{"10s", "zizq"} {
		r, err := ops.Simulate(context.Background(), backoff.ParseDeferred(policy), outage)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d retries, %d tasks dead\n", policy, r.Retries, r.Dead)
	}
	// Output:
	// 10s: 11694 retries, 0 tasks dead
	// zizq: 10191 retries, 0 tasks dead
}

// TestSimulateIsLikeARealRun compares the simulation of an outage with falldue itself, on a
// database whose clock the test moves.
func TestSimulateIsLikeARealRun(t *testing.T) {
	t.Parallel()
	const step, outage = 256 * time.Second, 36 * 256 * time.Second // so long that a stall of the machine is short
	policy := parse(t, "delay 1024s * n; attempts 4")
	want, err := ops.Simulate(t.Context(), policy, ops.Scenario{Outage: outage, PerSecond: 1 / step.Seconds(), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want.Dead < 10 || want.Failed != int(outage/step) || want.Retries < want.Failed {
		t.Errorf("the simulation is too harmless: %+v", want)
	}

	db := testdb.Open(t, testdb.SQLite)
	clock := tasktest.NewClock(t, db)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	failing, began := true, clock.Now(t)
	kind := falldue.NewKind[struct{}]("mail", falldue.KindConfig{Policy: policy})
	falldue.Handle(q, kind, func(context.Context, falldue.Task[struct{}]) error {
		if failing {
			return errors.New("down")
		}
		return nil
	})
	var got ops.Recovery
	open := map[int64]bool{} // tasks that have failed
	for at := time.Duration(0); at <= outage || len(open) > 0; at += step {
		failing = at < outage
		if _, err := kind.Enqueue(t.Context(), q, struct{}{}); err != nil {
			t.Fatal(err)
		}
		for _, ran := range tasktest.Drain(t, q) {
			if ran.Attempt > 1 {
				got.Retries++
			}
			switch {
			case ran.State == falldue.StateOpen && !open[ran.ID]:
				open[ran.ID] = true
				got.Failed++
			case ran.State == falldue.StateDead:
				delete(open, ran.ID)
				got.Dead++
			case ran.State == falldue.StateDone && open[ran.ID]:
				delete(open, ran.ID)
				got.Recovered = at - outage
			}
		}
		// The clock continues while tasks run. A step is longer, so that a task that a busy machine settles seconds
		// late is due in the right step, and no wait of up to an hour ends a step earlier.
		next := (at + step) * 107 / 100
		clock.Jump(t, max(0, began.Add(next).Sub(clock.Now(t))))
	}
	if got.Failed != want.Failed || got.Retries != want.Retries || got.Dead != want.Dead || got.Recovered != want.Recovered {
		t.Errorf("falldue: %+v\nthe simulation: %+v", got, want)
	}
}

// TestSimulateKnowsWorkers: with few of them, tasks that fall due together wait.
func TestSimulateKnowsWorkers(t *testing.T) {
	t.Parallel()
	s := ops.Scenario{Outage: time.Minute, PerSecond: 10, Handler: time.Second, Failure: 10 * time.Millisecond, Workers: 15}
	few, err := ops.Simulate(t.Context(), parse(t, "if(n < 2, 2m, 1s)"), s)
	if err != nil {
		t.Fatal(err)
	}
	s.Workers = 1000
	many, err := ops.Simulate(t.Context(), parse(t, "if(n < 2, 2m, 1s)"), s)
	if err != nil {
		t.Fatal(err)
	}
	if few.Failed != 600 || few.LongestWait == 0 || many.LongestWait != 0 || few.Recovered <= many.Recovered {
		t.Errorf("few workers: %+v\nmany: %+v", few, many)
	}
	total := 0
	for _, n := range few.Load {
		total += n
	}
	if total < 2*few.Failed || few.Peak == 0 {
		t.Errorf("%d attempts in all, peak %d", total, few.Peak)
	}
	if none, err := ops.Simulate(t.Context(), parse(t, "1s"), ops.Scenario{PerSecond: 1, Workers: 1}); err != nil || none.Failed != 0 || none.Recovered != 0 {
		t.Errorf("without an outage: %+v, error %v", none, err)
	}
}

func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	for says, s := range map[string]ops.Scenario{
		"an outage of -1s: must be 0 to 720h0m0s":                                                            {Outage: -time.Second, PerSecond: 1, Workers: 1},
		"0 tasks a second: must be above 0 and at most 1,000,000":                                            {Workers: 1},
		"0 workers: must be 1 to 1,000,000":                                                                  {PerSecond: 1},
		"handlers that succeed after -1s and fail after 0s: both must be 0 to 720h0m0s":                      {PerSecond: 1, Workers: 1, Handler: -time.Second},
		"handlers that succeed after 0s and fail after 2562047h47m16.854775807s: both must be 0 to 720h0m0s": {PerSecond: 1, Workers: 2, Outage: time.Hour, Failure: math.MaxInt64},
		"2 tasks per second that take 1s each need more than 2 workers: with 1, the backlog never ends":      {PerSecond: 2, Workers: 1, Handler: time.Second},
	} {
		if _, err := ops.Simulate(t.Context(), parse(t, "1s"), s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: error %v, want %q", s, err, says)
		}
	}
	if _, err := ops.Simulate(t.Context(), parse(t, "1s").WithMaxAttempts(-1), ops.Scenario{PerSecond: 1, Workers: 1}); err == nil {
		t.Error("an invalid policy is taken")
	}
}
