package faults

import (
	"context"
	"strconv"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
)

const (
	limitedName = "limited"
	// mostLimited is how many limited jobs may run at once, in all workers.
	mostLimited = 3
	// One job in limitedEvery is limited, in runs that have such jobs.
	limitedEvery = 14
)

// countLimited counts the limited jobs that run, by the database's clock. A job whose lease is
// over runs no more.
func countLimited(s dialect.Server) string {
	return "select count(*) from falldue_tasks where kind = '" + limitedName + "' and claimed_by <> '' and updated_at > " + s.Clock().Now
}

// limited runs a job of which few may run at once, and records if there are more.
func (w *worker) limited(ctx context.Context, t falldue.Task[Job]) error {
	p := w.begin(ctx, t)
	var n int
	if err := w.db.GetContext(ctx, &n, w.count); err == nil && n > mostLimited {
		w.write(Exceeded, t, strconv.Itoa(n))
	}
	if err := t.SetResult(t.Fence); err != nil {
		return err
	}
	return w.end(ctx, t, p)
}
