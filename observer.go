package falldue

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// publisher passes a worker's events on to the hooks and the subscriptions of its queue. Its methods are cheap while
// there are no receivers. A nil publisher has none.
type publisher struct {
	hooks    Hooks
	log      *slog.Logger
	classify func(error) dialect.Class

	mu            sync.Mutex
	subscriptions atomic.Pointer[[]*Subscription] // nil if there are none
}

// wantsEvents reports whether there is a receiver of events.
func (o *publisher) wantsEvents() bool {
	return o != nil && (o.hooks.Event != nil || o.subscriptions.Load() != nil)
}

// Started passes on that a run has begun.
func (o *publisher) Started(r *run.Run) {
	if o.wantsEvents() {
		o.publish(Event{RunInfo: RunInfo(r.Info())})
	}
}

// Ended passes on the end of a run. next is the time until the task falls due again.
func (o *publisher) Ended(r *run.Run, end outcome.Outcome, next time.Duration) {
	if o.wantsEvents() {
		o.publish(Event{RunInfo: RunInfo(r.Info()), Outcome: Outcome(end), Err: reasonOf(r), Took: r.Took, Next: next})
	}
}

// reasonOf returns why a run has failed, or nil if it has not.
func reasonOf(r *run.Run) error {
	if r.Failure != nil {
		return &outcome.Shown{Err: r.Failure, Original: r.Failure.Err}
	}
	if text := r.CauseOfDeath(); text != "" {
		return errors.New(text)
	}
	return nil
}

func (o *publisher) publish(e Event) {
	if hook := o.hooks.Event; hook != nil {
		o.guard(func() { hook(e) })
	}
	if list := o.subscriptions.Load(); list != nil {
		for _, s := range *list {
			s.offer(e)
		}
	}
}

// Overtime passes on that a handler has not returned after its timeout.
func (o *publisher) Overtime(r *run.Run, timeout time.Duration) {
	if hook := o.hooks.Overtime; hook != nil {
		o.guard(func() { hook(Event{RunInfo: RunInfo(r.Info()), Took: timeout}) })
	}
}

// Swept passes on the result of a search of a queue. The search began at start.
func (o *publisher) Swept(queue string, lanes int, start time.Time, err error) {
	if o != nil {
		o.statement(o.hooks.Sweep, StatementStats{Queue: queue, Lanes: lanes}, start, err)
	}
}

// Claimed passes on the result of a claim. The claim began at start.
func (o *publisher) Claimed(queue string, wanted int, claims []*store.Claim, start time.Time, err error) {
	if o == nil || o.hooks.Claim == nil {
		return
	}
	stats := StatementStats{Queue: queue, Wanted: wanted, Tasks: len(claims)}
	for _, c := range claims {
		if c.Previous.Valid {
			stats.Recovered++
		}
	}
	o.statement(o.hooks.Claim, stats, start, err)
}

// Settled passes on the result of a statement that settles tasks. The statement began at start.
func (o *publisher) Settled(tasks int, left store.Unsettled, start time.Time, err error) {
	if o != nil {
		o.statement(o.hooks.Settle, StatementStats{Tasks: tasks, Lost: len(left.Lost), Locked: len(left.Locked)}, start, err)
	}
}

// Extended passes on the result of a statement that extends leases. The statement began at start.
func (o *publisher) Extended(tasks int, left store.Unsettled, start time.Time, err error) {
	if o != nil {
		o.statement(o.hooks.Extend, StatementStats{Tasks: tasks, Lost: len(left.Lost), Locked: len(left.Locked)}, start, err)
	}
}

// Trouble passes on a failure of a background loop.
func (o *publisher) Trouble(role, queue string, err error) {
	o.statement(o.hooks.Trouble, StatementStats{Role: role, Queue: queue}, time.Now(), err)
}

// statement calls a hook, unless it is nil, with the stats of a statement that began at start.
func (o *publisher) statement(hook func(StatementStats), stats StatementStats, start time.Time, err error) {
	if hook == nil {
		return
	}
	stats.Took, stats.Err = time.Since(start), err
	if err != nil {
		stats.Class = o.classify(err)
	}
	o.guard(func() { hook(stats) })
}

// guard calls a hook, and logs its panic.
func (o *publisher) guard(hook func()) {
	defer func() {
		if v := recover(); v != nil {
			o.log.Error("falldue: a hook panicked", "error", v, "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// Add adds a subscription.
func (o *publisher) Add(s *Subscription) {
	o.change(func(list []*Subscription) []*Subscription { return append(list, s) })
}

// Remove removes a subscription. It may have been removed before.
func (o *publisher) Remove(s *Subscription) {
	o.change(func(list []*Subscription) []*Subscription {
		return slices.DeleteFunc(list, func(other *Subscription) bool { return other == s })
	})
}

func (o *publisher) change(change func([]*Subscription) []*Subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []*Subscription
	if old := o.subscriptions.Load(); old != nil {
		list = slices.Clone(*old)
	}
	if list = change(list); len(list) == 0 {
		o.subscriptions.Store(nil)
		return
	}
	o.subscriptions.Store(&list)
}
