package ops

import (
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Run is a future attempt of a task.
type Run struct {
	// Attempt is the number of the attempt.
	Attempt int
	// The attempt is due between Earliest and Latest.
	Earliest, Latest time.Time
}

// Future lists the next attempts of a task. All attempts are assumed to fail, and handlers to take no time.
type Future struct {
	// Runs are the next attempts in order, without a running attempt.
	Runs []Run
	// GivenUp reports whether the task is dead after the last of Runs. If Runs is empty, it reports whether an unfinished
	// task becomes dead at its next claim. If GivenUp is false, more attempts follow.
	GivenUp bool
}

// Ahead returns the next attempts of a task under policy p, which is the per-task policy or the
// policy of the kind. It returns up to most attempts: 1 to 1,000,000. A finished task has none.
// Ahead returns an error if the policy is invalid, or most is out of range.
func Ahead(t falldue.TaskInfo, p backoff.Policy, most int) (Future, error) {
	if err := p.Err(); err != nil {
		return Future{}, err
	}
	return ahead(t, []span{{policy: p}}, most)
}

// ahead is Ahead under policies one after the other.
func ahead(t falldue.TaskInfo, list []span, most int) (Future, error) {
	if most < 1 || most > maxRetries {
		return Future{}, fmt.Errorf("ops: %d attempts: must be 1 to %d", most, maxRetries)
	}
	if t.State != falldue.StateOpen && t.State != falldue.StateSnoozed {
		return Future{}, nil
	}
	if t.MaxAttempts > 0 {
		list = slices.Clone(list)
		for i := range list {
			list[i].policy = list[i].policy.WithMaxAttempts(t.MaxAttempts)
		}
	}
	var f Future
	n, first := t.Attempts, t.FirstAttemptedAt
	earliest, last := t.Now, t.Now // of attempt n, if it runs now
	if !Running(t) {
		if earliest = t.UpdatedAt; t.State == falldue.StateOpen {
			earliest = dueUnder(list, t.UpdatedAt, n)
		}
		earliest = latest(earliest, t.Now)
		if limit := policyAt(list, earliest).MaxAttempts(); limit > 0 && n >= limit {
			return Future{GivenUp: true}, nil
		}
		last = earliest
		if n == 0 {
			first = earliest
		}
		n++
		f.Runs = append(f.Runs, Run{n, earliest, last})
	}
	for ; ; n++ {
		p, next := policyAt(list, earliest), dueUnder(list, earliest, n)
		if ends(p, n, next.Sub(first)) {
			f.GivenUp = true
			return f, nil
		}
		if len(f.Runs) == most {
			return f, nil
		}
		_, jitter := policyAt(list, last).Wait(int64(n))
		earliest, last = next, dueUnder(list, last.Add(jitter), n)
		if limit := p.MaxElapsed(); limit > 0 && last.Sub(first) > limit {
			last = first.Add(limit)
		}
		f.Runs = append(f.Runs, Run{n + 1, earliest, last})
	}
}

// Running reports whether a worker runs a task: its lease was valid when the task was
// read.
func Running(t falldue.TaskInfo) bool {
	return t.ClaimedBy != "" && t.UpdatedAt.After(t.Now) && (t.State == falldue.StateOpen || t.State == falldue.StateSnoozed)
}
