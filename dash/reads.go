package dash

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// reads are the values that all viewers of a handler share.
type reads struct {
	slots   chan struct{}
	changed *atomic.Int64

	pulse     *cached[ops.Pulse]
	overdue   *cached[[]ops.Overdue]
	counts    *cached[[]ops.Count]
	failures  *cached[ops.Failures]
	schedules *cached[[]periodic.Info]
	history   *cached[[]ops.Override]
	findings  *cached[[]ops.Finding]
	profile   *cached[*ops.Profile]
	minutes   *cached[[]ops.Span] // the last hour, by queue
	byKind    *cached[[]ops.Span] // the last hour, by queue and kind
	audit     *cached[[]ops.Deed]
	limits    *cached[[]ops.Limit]
	tasks     keyed[ops.Page]
	task      keyed[taskView]
	flow      keyed[flow.Graph]
	limitKeys keyed[limitKeys]
}

func (r *reads) init(h *Handler) {
	r.slots, r.changed = make(chan struct{}, readsAtOnce), &h.changed
	o := h.ops
	r.pulse = newCached(r, 2*time.Second, h.monitor.Read)
	r.overdue = newCached(r, 10*time.Second, func(ctx context.Context) ([]ops.Overdue, error) { return h.monitor.Overdue(ctx, 0) })
	r.counts = newCached(r, 10*time.Second, o.EstimateCounts)
	r.failures = newCached(r, 15*time.Second, h.monitor.Failures)
	r.schedules = newCached(r, 5*time.Second, func(ctx context.Context) ([]periodic.Info, error) { return periodic.List(ctx, h.queue) })
	r.history = newCached(r, 5*time.Second, o.OverrideHistory)
	r.minutes = newCached(r, 10*time.Second, func(ctx context.Context) ([]ops.Span, error) { return o.History(ctx, ops.HistoryFilter{ByQueue: true}) })
	r.byKind = newCached(r, 10*time.Second, func(ctx context.Context) ([]ops.Span, error) { return o.History(ctx, ops.HistoryFilter{ByKind: true}) })
	r.audit = newCached(r, 5*time.Second, func(ctx context.Context) ([]ops.Deed, error) { return o.Audit(ctx, shownDeeds) })
	r.limits = newCached(r, 2*time.Second, func(ctx context.Context) ([]ops.Limit, error) {
		workers, err := o.Workers(ctx)
		if err != nil {
			return nil, err
		}
		return o.Limits(ctx, workers)
	})
	r.findings = newCached(r, time.Minute, o.Diagnose)
	r.findings.limit = 2 * time.Minute
	r.profile = newCached(r, time.Minute, o.Profile)
	r.profile.limit = time.Minute
	r.tasks.make = func(key string) *cached[ops.Page] {
		return newCached(r, 2*time.Second, func(ctx context.Context) (ops.Page, error) {
			f, list, err := parseList(key)
			if err != nil {
				return ops.Page{}, err
			}
			return o.Tasks(ctx, f, list)
		})
	}
	r.task.make = func(key string) *cached[taskView] {
		return newCached(r, 2*time.Second, func(ctx context.Context) (taskView, error) {
			id, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				return taskView{}, falldue.ErrNotFound
			}
			return h.readTask(ctx, id)
		})
	}
	r.limitKeys.make = func(key string) *cached[limitKeys] {
		return newCached(r, 2*time.Second, func(ctx context.Context) (limitKeys, error) { return h.readLimitKeys(ctx, key) })
	}
	r.flow.make = func(key string) *cached[flow.Graph] {
		return newCached(r, 5*time.Second, func(ctx context.Context) (flow.Graph, error) {
			id, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				return flow.Graph{}, falldue.ErrNotFound
			}
			return flow.GraphOf(ctx, h.queue, id, flow.GraphMost)
		})
	}
}
