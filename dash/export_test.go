package dash

import (
	"context"

	"github.com/falldue/falldue/ops"
)

// Routes are the routes that change something.
func Routes() []string { return sorted(posts) }

// SimulateFields are the fields of the form of simulations.
func SimulateFields() map[string]string { return simulateFields }

// Expire makes all that a handler has read stale.
func Expire(h *Handler) {
	h.changedNow()
	r := &h.reads
	for _, c := range []interface{ forget() }{r.pulse, r.overdue, r.counts, r.failures, r.schedules, r.minutes, r.audit} {
		c.forget()
	}
}

// forget makes the next request read the value again.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = c.tried.AddDate(-1, 0, 0)
}

// OnRead calls f before each read of what the first page shows.
func OnRead(h *Handler, f func()) {
	spy(h.reads.pulse, f)
	spy(h.reads.overdue, f)
	spy(h.reads.counts, f)
	spy[ops.Failures](h.reads.failures, f)
	spy(h.reads.schedules, f)
}

func spy[T any](c *cached[T], f func()) {
	read := c.read
	c.read = func(ctx context.Context) (T, error) {
		f()
		return read(ctx)
	}
}
