package ops

import (
	"context"
	"time"
)

// QuickTasks is Tasks with ListOptions.Quick, for pages that read up to looked entries of the index, and look at first
// tasks in the order of their ids.
func (o *Ops) QuickTasks(ctx context.Context, f Filter, list ListOptions, looked, first int) (Page, error) {
	return o.list(ctx, f, []ListOptions{list}, func(s *search) { s.indexed, s.quick = true, &quick{looked: looked, first: first} })
}

// AllowChecks sets how long each check of Diagnose may take.
func (o *Ops) AllowChecks(limit time.Duration) { o.checks = limit }

// NewSmallMonitor returns a monitor whose reads find about so many lanes, with so many for each statement, and take
// as long as a busy machine needs.
func (o *Ops) NewSmallMonitor(lanes, page int) *Monitor {
	m := o.NewMonitor()
	m.most, m.failuresWithin = bound{lanes, page, unbounded.within}, unbounded.within
	return m
}
