package faults

import (
	"strconv"
	"testing"
	"time"
)

// TestCheckerWatchesLateStarts: a first start after the expiry is found, if the margin of a claim does not explain it.
func TestCheckerWatchesLateStarts(t *testing.T) {
	t.Parallel()
	const late = expiresAfter + claimTakes + time.Millisecond
	claimedAfter := func(d time.Duration) func(*Row) {
		return func(r *Row) { r.CreatedAt, r.AttemptedAt = time.Unix(0, 0), time.Unix(0, 0).Add(d) }
	}
	expired := func(r *Row) { r.Expired = true }
	noted := func(fence int64, d time.Duration) Event { return event(Claimed, fence, int(fence), microsOf(d)) }
	retry := []Record{{1, 1, "retried", "w/1"}}
	for name, c := range map[string]struct {
		history  []Event
		row      []Row
		exceeded int
	}{
		"in time":                          {ranOnce(1, OutcomeDone), row1(expiringName, "done", 1, claimedAfter(expiresAfter)), 0},
		"within the margin":                {ranOnce(1, OutcomeDone), row1(expiringName, "done", 1, claimedAfter(late-time.Millisecond)), 0},
		"late":                             {ranOnce(1, OutcomeDone), row1(expiringName, "done", 1, claimedAfter(late)), 1},
		"late, but its kind has no expiry": {ranOnce(1, OutcomeDone), row1(plainName, "done", 1, claimedAfter(late)), 0},
		"expired before its enqueue":       {nil, row1(expiringName, "cancelled", 0, expired), 0},
		"started, but expired before its enqueue": {ranOnce(1, OutcomeDone), row1(expiringName, "done", 1, expired), 1},
		"in time, and retried late": {
			append(ranOnce(1, OutcomeFailed), append(ranOnce(2, OutcomeDone), noted(1, 0))...),
			row1(expiringName, "done", 2, func(r *Row) { claimedAfter(late)(r); r.Records = retry }), 0,
		},
		"late, and retried": {
			append(ranOnce(1, OutcomeFailed), append(ranOnce(2, OutcomeDone), noted(1, late))...),
			row1(expiringName, "done", 2, func(r *Row) { claimedAfter(2 * late)(r); r.Records = retry }), 1,
		},
		"lost before it started, which counts": {ranOnce(2, OutcomeDone), row1(expiringName, "done", 2, func(r *Row) {
			claimedAfter(late)(r)
			r.Records = []Record{{1, 1, "lost", "w/1"}}
		}), 0},
		"lost before it started, and expired by its own time": {ranOnce(2, OutcomeDone), row1(expiringName, "done", 2, func(r *Row) {
			r.Expired, r.Dated, r.Records = true, true, []Record{{1, 1, "lost", "w/1"}}
		}), 1},
	} {
		if v := (Checker{MaxAttempts: maxAttempts}).Check(c.history, c.row); v.Exceeded != c.exceeded || v.Lost+v.Doubled+v.StaleSettles+v.Early > 0 {
			t.Errorf("%s: %d exceeded, want %d: %q", name, v.Exceeded, c.exceeded, v.Findings)
		}
	}
}

func microsOf(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
