package ops

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
)

// Outage describes tasks that fail at the same time. All their retries fail, too.
type Outage struct {
	// Failures is the number of tasks: 1 to 1,000,000.
	Failures int
	// Retries is the number of retries to compute for each task: 1 to 1,000. Failures * Retries must be at most
	// 10,000,000.
	Retries int
	// Bucket is the length of the intervals in which retries are counted. Defaults to a minute. If the retries last for
	// more than 100,000 intervals, [Stampede] doubles the length as often as needed.
	Bucket time.Duration
	// Seed makes the jitter repeatable.
	Seed uint64
}

// Herd is the load of the retries after an outage. All times count from the failures. Handlers are assumed to take no
// time.
type Herd struct {
	// Retries contains the times of the retries of each task: Retries[i][k] is the time of retry k+1 of task i. A task
	// that is given up has fewer retries than the others.
	Retries [][]time.Duration
	// Bucket is the length of an interval.
	Bucket time.Duration
	// Load is the number of retries in each interval, from the failures to the last retry.
	Load []int
	// Peak is the largest element of Load, and PeakAt is when the first interval with Peak begins.
	Peak   int
	PeakAt time.Duration
	// Idle is the share of intervals without a retry, 0 to 1.
	Idle float64
	// GivenUp is how many tasks are given up before they have had all of [Outage].Retries.
	GivenUp int
}

const maxBuckets = 100_000

// Stampede returns the load of the retries when tasks fail at the same time, as in the picture in "Visualization of
// backoff functions" by ananthakumaran. It returns an error if ctx ends, the policy is invalid, or a field of o is out
// of range.
func Stampede(ctx context.Context, p backoff.Policy, o Outage) (Herd, error) {
	if err := p.Err(); err != nil {
		return Herd{}, err
	}
	if err := o.validate(); err != nil {
		return Herd{}, err
	}
	h := Herd{Bucket: o.Bucket, Retries: make([][]time.Duration, o.Failures)}
	if h.Bucket == 0 {
		h.Bucket = time.Minute
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	var last time.Duration
	for i := range h.Retries {
		if err := ctx.Err(); err != nil {
			return Herd{}, err
		}
		at := time.Duration(0)
		for n := 1; n <= o.Retries; n++ {
			wait, jitter := p.Wait(int64(n))
			if jitter > 0 {
				wait += time.Duration(random.Int64N(int64(jitter)))
			}
			if ends(p, n, sum(at, wait)) {
				h.GivenUp++
				break
			}
			at = sum(at, wait)
			h.Retries[i] = append(h.Retries[i], at)
		}
		last = max(last, at)
	}
	for last/h.Bucket >= maxBuckets {
		h.Bucket *= 2
	}
	h.count(last)
	return h, nil
}

func (o Outage) validate() error {
	switch {
	case o.Failures < 1 || o.Failures > 1_000_000:
		return fmt.Errorf("ops: %d failures: must be 1 to 1,000,000", o.Failures)
	case o.Retries < 1 || o.Retries > 1000:
		return fmt.Errorf("ops: %d retries: must be 1 to 1,000", o.Retries)
	case o.Failures*o.Retries > 10_000_000:
		return fmt.Errorf("ops: %d failures with %d retries each: must be at most 10,000,000 retries in all", o.Failures, o.Retries)
	case o.Bucket < 0:
		return fmt.Errorf("ops: a bucket of %v: must not be negative", o.Bucket)
	}
	return nil
}

// count counts the retries of each interval up to the last retry.
func (h *Herd) count(last time.Duration) {
	h.Load = make([]int, last/h.Bucket+1)
	for _, task := range h.Retries {
		for _, at := range task {
			h.Load[at/h.Bucket]++
		}
	}
	idle := 0
	for i, n := range h.Load {
		if n > h.Peak {
			h.Peak, h.PeakAt = n, time.Duration(i)*h.Bucket
		}
		if n == 0 {
			idle++
		}
	}
	h.Idle = float64(idle) / float64(len(h.Load))
}

// All returns the times of all retries, in order.
func (h Herd) All() []time.Duration {
	all := slices.Concat(h.Retries...)
	slices.Sort(all)
	return all
}
