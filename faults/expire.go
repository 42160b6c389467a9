package faults

import (
	"fmt"
	"time"

	"github.com/falldue/falldue"
)

const (
	expiringName = "expiring"
	// One job in expiringEvery expires if it has not started expiresAfter its due time, in runs that have limited
	// jobs, too.
	expiringEvery = 13
	expiresAfter  = 300 * time.Millisecond
	// claimTakes is the longest time from when a claim finds a job that has not expired to the time that it records.
	// Where a claim is two statements, a fault may come between them. After a lease no handler starts.
	claimTakes = lease
)

// expire makes the expiring job with a number one that has expired before its enqueue, as each second one has, and
// returns its options. Half of these jobs expire by the policy, and half by a time of their own.
func (j *Job) expire(number int) (opts falldue.EnqueueOptions) {
	past := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	switch number / expiringEvery % 4 {
	case 1:
		j.Expired, opts.RunAt = true, past
	case 3:
		j.Expired, j.Dated, opts.ExpireAt = true, true, past
	}
	return opts
}

// expiredWrongly returns why a job must not have expired, or "".
func (c Checker) expiredWrongly(l *life, r Row) string {
	if r.Kind != expiringName || r.State != "cancelled" {
		return ""
	}
	for _, s := range l.started {
		switch end := l.ended[s.Fence]; end.Outcome {
		case OutcomeSnoozed, OutcomeStopped: // such a run does not count
		default:
			return fmt.Sprintf("it expired, though claim %d had started it, and ended as %q", s.Fence, end.Outcome)
		}
	}
	if late := r.EndedAt.Sub(r.CreatedAt); late < expiresAfter && !r.Expired {
		return fmt.Sprintf("it expired %v after its enqueue", late)
	}
	return ""
}

// startedLate returns that the first handler of a job started after the job had expired, by the times that the database
// recorded, or "".
func startedLate(l *life) string {
	if len(l.rows) != 1 || len(l.started) == 0 || l.rows[0].Kind != expiringName {
		return ""
	}
	r, first := l.rows[0], l.started[0]
	if r.Dated { // even after claims that were lost
		return fmt.Sprintf("claim %d started it, and its ExpireAt was before its enqueue", first.Fence)
	}
	if first.Attempt > 1 {
		return "" // a worker has died with the job, perhaps before it cancelled it, and a later attempt has no limit
	}
	if r.Expired {
		return fmt.Sprintf("claim %d started it, and it had expired before its enqueue", first.Fence)
	}
	if at, known := l.claimed()[first.Fence]; known && at.Sub(r.CreatedAt) > expiresAfter+claimTakes {
		return fmt.Sprintf("claim %d started it %v after its enqueue, and it expires after %v", first.Fence, at.Sub(r.CreatedAt), expiresAfter)
	}
	return ""
}
