package falldue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// observer passes on what a worker does to the hooks and the subscriptions of its queue.
// Its methods are cheap while there are none. A nil observer has none.
type observer struct {
	hooks    Hooks
	log      *slog.Logger
	classify func(error) dialect.Class

	mu            sync.Mutex
	subscriptions atomic.Pointer[[]*Subscription] // nil if there are none
}

// wantsEvents reports whether somebody wants events.
func (o *observer) wantsEvents() bool {
	return o != nil && (o.hooks.Event != nil || o.subscriptions.Load() != nil)
}

// started passes on that a run has begun.
func (o *observer) started(r *taskRun) {
	if o.wantsEvents() {
		o.publish(Event{TaskMeta: TaskMeta(r.info()), Worker: r.workerID})
	}
}

// ended passes on how a run has ended. next is in how long the task falls due again.
func (o *observer) ended(r *taskRun, end outcome, next time.Duration) {
	if o.wantsEvents() {
		o.publish(Event{TaskMeta: TaskMeta(r.info()), Outcome: Outcome(end), Err: reasonOf(r), Took: r.took, Next: next, Worker: r.workerID})
	}
}

// reasonOf returns why a run has failed, or nil if it has not.
func reasonOf(r *taskRun) error {
	if r.failure != nil {
		return &shownError{err: r.failure, original: r.failure.err}
	}
	if text := r.causeOfDeath(); text != "" {
		return errors.New(text)
	}
	return nil
}

func (o *observer) publish(e Event) {
	if hook := o.hooks.Event; hook != nil {
		o.guard(func() { hook(e) })
	}
	if list := o.subscriptions.Load(); list != nil {
		for _, s := range *list {
			s.offer(e)
		}
	}
}

// sweeping returns find with the hook of sweeps, if there is one.
func (o *observer) sweeping(queue string, find func(context.Context) ([]store.Head, error)) func(context.Context) ([]store.Head, error) {
	if o == nil || o.hooks.Sweep == nil {
		return find
	}
	return func(ctx context.Context) ([]store.Head, error) {
		start := time.Now()
		heads, err := find(ctx)
		stats := SweepStats{Queue: queue, Lanes: len(heads), Took: time.Since(start), Err: err, Class: o.classOf(err)}
		o.guard(func() { o.hooks.Sweep(stats) })
		return heads, err
	}
}

// claimed passes on what a claim did that began at start.
func (o *observer) claimed(queue string, wanted int, claims []*store.Claim, start time.Time, err error) {
	if o == nil || o.hooks.Claim == nil {
		return
	}
	stats := ClaimStats{Queue: queue, Wanted: wanted, Claimed: len(claims), Took: time.Since(start), Err: err, Class: o.classOf(err)}
	for _, c := range claims {
		if c.Previous.Valid {
			stats.Recovered++
		}
	}
	o.guard(func() { o.hooks.Claim(stats) })
}

// settled passes on what a statement did that began at start.
func (o *observer) settled(tasks int, left store.Unsettled, start time.Time, err error) {
	if o == nil || o.hooks.Settle == nil {
		return
	}
	stats := SettleStats{Tasks: tasks, Lost: len(left.Lost), Locked: len(left.Locked), Took: time.Since(start), Err: err, Class: o.classOf(err)}
	o.guard(func() { o.hooks.Settle(stats) })
}

// extended passes on what a statement did that began at start.
func (o *observer) extended(tasks int, left store.Unsettled, start time.Time, err error) {
	if o == nil || o.hooks.Extend == nil {
		return
	}
	stats := ExtendStats{Tasks: tasks, Lost: len(left.Lost), Locked: len(left.Locked), Took: time.Since(start), Err: err, Class: o.classOf(err)}
	o.guard(func() { o.hooks.Extend(stats) })
}

func (o *observer) classOf(err error) dialect.Class {
	if err == nil {
		return dialect.Other
	}
	return o.classify(err)
}

// guard calls a hook, and logs its panic.
func (o *observer) guard(hook func()) {
	defer func() {
		if v := recover(); v != nil {
			events{o.log}.hookPanicked(v)
		}
	}()
	hook()
}

// add adds a subscription.
func (o *observer) add(s *Subscription) {
	o.change(func(list []*Subscription) []*Subscription { return append(list, s) })
}

// remove removes a subscription. It may have been removed before.
func (o *observer) remove(s *Subscription) {
	o.change(func(list []*Subscription) []*Subscription {
		return slices.DeleteFunc(list, func(other *Subscription) bool { return other == s })
	})
}

func (o *observer) change(change func([]*Subscription) []*Subscription) {
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
