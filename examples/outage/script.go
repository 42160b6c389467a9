package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

const (
	perSecond = 30     // how many mails are enqueued in each second of the script
	maxTasks  = 10_000 // more than there ever are
)

// settings are the settings of a run.
type settings struct {
	dsn        string        // "" is a temporary SQLite file
	deliveries int           // how many are enqueued at the beginning
	second     time.Duration // how long a second of the script lasts
	ramp       time.Duration
}

// result is what a run has shown.
type result struct {
	enqueued, succeeded int
	// Of the deliveries that waited when the policy was changed: how many have another due time, how many fell due and
	// ran before workers applied the change, and how many rows the change wrote.
	waiting, moved, ran, written int
	// The mails of the killed worker, and how many of them the other worker ran.
	lost, takenOver int
	// The columns of the chart, the one in which the ramp begins, and how many steps the ramp has.
	columns     []int
	ramp, steps int
}

// script is the course of the outage. It does what an operator would do.
type script struct {
	settings
	db      *sqlx.DB
	queue   *falldue.Queue
	ops     *ops.Ops
	webhook falldue.Kind[order]
	world   *world
	workers []*worker
	view    *view

	began     time.Time
	open      bool // mails come
	enqueued  int  // all tasks so far
	changedAt time.Time
	result    result
}

// play plays the scenes one after the other.
func (s *script) play(ctx context.Context) error {
	for _, scene := range []func(context.Context) error{s.ready, s.fail, s.changePolicy, s.killWorker, s.release} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready waits for the workers.
func (s *script) ready(ctx context.Context) error {
	return s.until(ctx, func() (bool, error) {
		list, err := s.ops.Workers(ctx)
		return len(list) == len(s.workers), err
	})
}

// fail enqueues deliveries, and waits until each of them has failed twice.
func (s *script) fail(ctx context.Context) error {
	s.world.begin()
	s.began, s.open = time.Now(), true
	s.view.say("The partner is down: %d deliveries fail, %d mails a second do not.", s.deliveries, perSecond)
	receipts, err := s.webhook.EnqueueMany(ctx, s.queue, make([]order, s.deliveries))
	if err != nil {
		return err
	}
	s.enqueued = len(receipts)
	for i := range 3 {
		s.view.samples = append(s.view.samples, receipts[i*(len(receipts)-1)/2].ID)
	}
	return s.until(ctx, func() (bool, error) {
		return s.world.count(func(_ int64, d received) bool { return d.refused >= 2 }) >= s.deliveries, nil
	})
}

// changePolicy makes all delays ten times as long, and compares the tasks before and after.
func (s *script) changePolicy(ctx context.Context) error {
	before, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	slow, err := ops.Slow(10)
	if err != nil {
		return err
	}
	if err := s.ops.SetPolicy(ctx, s.subject(), slow); err != nil {
		return err
	}
	s.changedAt = time.Now()
	s.view.say("The policy is changed, so that all delays are ten times as long:")
	s.view.note("$ falldue policy slow %s 10x", s.webhook.Name())
	if err := s.until(ctx, func() (bool, error) { return s.applied(ctx) }); err != nil { // within two seconds
		return err
	}
	after, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	r := &s.result
	for id, was := range before {
		now := after[id]
		switch {
		case was.running:
			continue
		case now.fence != was.fence: // a worker has claimed it
			r.ran++
		case now.columns != was.columns:
			r.written++
		case now.due.After(was.due):
			r.moved++
		}
		r.waiting++
	}
	s.view.note("%d of %d countdowns have moved. Rows written: %d.", r.moved, r.waiting, r.written)
	return nil
}

// killWorker kills a worker that sends mails, and waits until the other one has sent them.
func (s *script) killWorker(ctx context.Context) error {
	victim, heir := s.workers[1], s.workers[0]
	err := s.until(ctx, func() (bool, error) {
		return s.world.count(func(_ int64, d received) bool { return d.running && d.worker == victim.name }) >= 3, nil
	})
	if err != nil {
		return err
	}
	victim.kill()
	page, err := s.ops.Tasks(ctx, ops.Filter{Kind: mail.Name()}, ops.ListOptions{Limit: maxTasks})
	if err != nil {
		return err
	}
	lost := map[int64]bool{}
	for _, t := range page.Tasks {
		if strings.HasPrefix(t.ClaimedBy, victim.name) {
			lost[t.ID] = true
		}
	}
	s.result.lost = len(lost)
	s.view.say("%s is killed while it sends %d mails.", victim.name, len(lost))
	err = s.until(ctx, func() (bool, error) {
		s.result.takenOver = s.world.count(func(id int64, d received) bool { return lost[id] && d.worker == heir.name })
		return s.result.takenOver == len(lost), nil
	})
	if err != nil {
		return err
	}
	s.view.note("Their leases have ended, and %s has sent all of them.", heir.name)
	return nil
}

// release waits until the whole backlog would be due without the change, lets the partner answer, and releases the
// backlog gradually.
func (s *script) release(ctx context.Context) error {
	overdue := s.changedAt.Add(8 * s.second)
	if err := s.until(ctx, func() (bool, error) { return time.Now().After(overdue), nil }); err != nil {
		return err
	}
	s.world.up.Store(true)
	profile, err := s.ops.Profile(ctx)
	if err != nil {
		return err
	}
	steps, err := profile.Release(s.subject(), false, s.ramp)
	if err != nil {
		return err
	}
	if err := s.ops.SetPolicy(ctx, s.subject(), steps[0].Formula, ops.OverrideOptions{Steps: steps[1:], Until: profile.At.Add(s.ramp)}); err != nil {
		return err
	}
	r, end := &s.result, time.Now().Add(s.ramp)
	r.ramp, r.steps = s.world.column(), len(steps)
	s.view.say("The partner is back. A ramp releases the backlog:")
	s.view.note("$ falldue policy ramp %s over %v", s.webhook.Name(), s.ramp)
	if err := s.until(ctx, func() (bool, error) { return time.Now().After(end), nil }); err != nil {
		return err
	}
	s.open = false
	err = s.until(ctx, func() (bool, error) {
		r.enqueued, r.succeeded = s.enqueued, s.world.count(func(_ int64, d received) bool { return d.succeeded })
		return r.succeeded == r.enqueued, nil
	})
	if err != nil {
		return err
	}
	r.columns = s.world.columns()
	rate := func(columns []int) time.Duration {
		return time.Duration(slices.Max(columns)) * time.Second / s.world.width
	}
	s.view.say("All %d tasks have succeeded.", r.succeeded)
	s.view.note("Requests a second: up to %d in the herd, up to %d in the ramp.", rate(r.columns[:r.ramp]), rate(r.columns[r.ramp:]))
	return nil
}

// subject selects the tasks for which the policy is changed.
func (s *script) subject() falldue.Subject { return falldue.Subject{Kind: s.webhook.Name()} }

// applied reports whether all workers have reported that they apply the override.
func (s *script) applied(ctx context.Context) (bool, error) {
	overrides, err := s.ops.Overrides(ctx)
	if err != nil || len(overrides) == 0 {
		return false, err
	}
	workers, err := s.ops.Workers(ctx)
	return !slices.ContainsFunc(workers, func(w ops.Worker) bool { return !overrides[0].AppliedBy(w) }), err
}

// until enqueues mails and draws the screen until a condition is met.
func (s *script) until(ctx context.Context, met func() (bool, error)) error {
	tick := time.NewTicker(s.second / 20)
	defer tick.Stop()
	for {
		if n := s.deliveries + int(perSecond*time.Since(s.began)/s.second) - s.enqueued; s.open && n > 0 {
			if _, err := mail.EnqueueMany(ctx, s.queue, make([]order, n)); err != nil {
				return err
			}
			s.enqueued += n
		}
		if err := s.view.show(ctx, s.ops); err != nil {
			return err
		}
		if done, err := met(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
