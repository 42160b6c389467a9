package dash

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// overview is what the first page shows.
type overview struct {
	Verdict  verdict
	Now      time.Time
	Pulse    reading[ops.Pulse]
	Failures reading[ops.Failures]
	Counts   reading[[]ops.Count]
	Minutes  reading[[]ops.Span]
	Queues   []queueRow
	// Waiting, Dead and Done are estimated numbers of tasks.
	Waiting, Dead, Done int64
	Oldest              ops.Queue
	HasOldest           bool
	Trouble             []*trouble
}

// shownFailures is how many groups of failures the overview shows.
const shownFailures = 5

// together runs functions at the same time.
func together(list ...func()) {
	done := make(chan struct{})
	for _, f := range list {
		go func() {
			defer func() { done <- struct{}{} }()
			f()
		}()
	}
	for range list {
		<-done
	}
}

// readOverview reads the data of the first page. Parts that cannot be read are missing.
func (h *Handler) readOverview(ctx context.Context, errors bool) (o overview) {
	var late reading[[]ops.Overdue]
	s := state{Errors: errors}
	together(
		func() { o.Pulse = h.reads.pulse.get(ctx) },
		func() { late = h.reads.overdue.get(ctx) },
		func() { o.Failures = h.reads.failures.get(ctx) },
		func() { o.Counts = h.reads.counts.get(ctx) },
		func() { o.Minutes = h.reads.minutes.get(ctx) },
		func() { s.Schedules = h.reads.schedules.get(ctx).Value },
	)
	for _, err := range []error{o.Pulse.Err, late.Err, o.Failures.Err, o.Counts.Err, o.Minutes.Err} {
		t := troubleOf(err)
		if t != nil && !slices.ContainsFunc(o.Trouble, func(other *trouble) bool { return other.Text == t.Text }) {
			o.Trouble = append(o.Trouble, t)
		}
	}
	s.Pulse, s.Overdue, s.Failures = o.Pulse.Value, late.Value, o.Failures.Value
	o.Now = s.At
	if slices.ContainsFunc(ops.RunsByKind(s.Workers), ops.KindRuns.Failing) {
		s.Minutes = h.reads.byKind.get(ctx).Value
	}
	if o.Pulse.Known {
		o.Verdict = judge(s)
	}
	for _, c := range o.Counts.Value {
		switch c.State {
		case falldue.StateOpen, falldue.StateSnoozed, falldue.StateBlocked:
			o.Waiting += c.Tasks
		case falldue.StateDead:
			o.Dead += c.Tasks
		case falldue.StateDone:
			o.Done += c.Tasks
		}
	}
	if first, ok := s.First(); ok && !first.FirstDue.After(s.At) {
		o.Oldest, o.HasOldest = first, true
	}
	o.Queues = queueRows(s.Pulse, o.Counts.Value)
	return o
}

// ShownFailures are the first groups of failures.
func (o overview) ShownFailures() []ops.FailureGroup {
	return o.Failures.Value.Groups[:min(len(o.Failures.Value.Groups), shownFailures)]
}

func overviewPage(in *request) (page, error) {
	o := in.h.readOverview(in.r.Context(), in.allowed(ViewPayload, Target{}))
	return page{Title: "Overview", Live: true, Regions: []region{
		{ID: "verdict", Template: "verdict", Data: o},
		{ID: "numbers", Template: "numbers", Data: o},
		{ID: "rates", Template: "rates", Data: throughputOf(o.Minutes, o.Pulse.Value, in.h.now(o.Pulse))},
		{ID: "queues", Template: "queue-table", Data: o},
		{ID: "failures", Template: "failures-short", Data: o},
		{ID: "force", Template: "in-force", Data: inForce{Pulse: o.Pulse.Value, Now: o.Now, Age: o.Pulse.Age}},
	}}, nil
}

// inForce are the pauses and overrides that are in effect.
type inForce struct {
	ops.Pulse
	Now time.Time
	Age time.Duration
}
