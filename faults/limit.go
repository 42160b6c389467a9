package faults

import (
	"context"
	"fmt"
	"strconv"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
)

const (
	limitedName = "limited"
	// mostLimited is how many limited jobs may run at once, in all workers, and mostOfKey
	// how many of one key.
	mostLimited, mostOfKey = 3, 2
	// One job in limitedEvery is limited, in runs that have such jobs.
	limitedEvery = 14
)

// limitedKey returns the key of the limited job with a number: one of two.
func limitedKey(number int) string { return strconv.Itoa(number / limitedEvery % 2) }

// countLimited counts the limited jobs of each key that run, by the database's clock. A job
// whose lease is over runs no more.
func countLimited(s dialect.Server) string {
	return "select count(*) from falldue_tasks where kind = '" + limitedName + "' and claimed_by <> '' and updated_at > " + s.Clock().Now + " group by task_key"
}

// uncounted says how many counts of limited jobs failed if none succeeded: whether the limits
// held is not known then. Faults are not under way all the time, and a job has been claimed.
func uncounted(history []Event) string {
	failed := 0
	for _, e := range history {
		switch e.What {
		case Counted:
			return ""
		case Uncounted:
			failed++
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("all %d counts of limited jobs failed", failed)
}

// limited runs a job of which few may run at once, and records if there are more.
func (w *worker) limited(ctx context.Context, t falldue.Task[Job]) error {
	p := w.begin(ctx, t)
	var running []int // of each key
	if err := w.db.SelectContext(ctx, &running, w.count); err != nil {
		w.write(Uncounted, t, "") // a fault is under way
	} else {
		all := 0
		for _, n := range running {
			if all += n; n > mostOfKey {
				w.write(Exceeded, t, fmt.Sprint(n, "-of-one-key"))
			}
		}
		if w.write(Counted, t, strconv.Itoa(all)); all > mostLimited {
			w.write(Exceeded, t, strconv.Itoa(all))
		}
	}
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	return w.end(ctx, t, p)
}
