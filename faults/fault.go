package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// fault is something that goes wrong. It is over when do returns.
type fault struct {
	name string
	on   func(*Run) bool // whether the run can have it; nil is always
	do   func(context.Context, *Run, *rand.Rand) error
}

// errBusy is returned for a fault that finds nothing without a fault.
var errBusy = errors.New("every process, node or server has a fault already")

func hasLinks(r *Run) bool   { return r.db.engine != testdb.SQLite }
func ownServer(r *Run) bool  { return r.db.restart != nil }
func hasClock(r *Run) bool   { return canJump && hasLinks(r) } // SQLite has its process's clock
func hasStandby(r *Run) bool { return r.db.standby != nil }

// processFaults are the faults of a worker or an enqueuer.
var processFaults = []fault{
	{"kill", nil, func(_ context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			s.process.kill()
			return r.fleet.fill(s)
		})
	}},
	{"pause", nil, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			if err := pause(s.process.cmd.Process); err != nil {
				return err
			}
			r.wait(ctx, lease+span(dice, lease))
			return resume(s.process.cmd.Process)
		})
	}},
	{"pause then kill", nil, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, workerPart, func(s *slot) error {
			if err := pause(s.process.cmd.Process); err != nil {
				return err
			}
			r.wait(ctx, lease+span(dice, lease))
			s.process.kill()
			return r.fleet.fill(s)
		})
	}},
	{"replace", nil, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			return r.fleet.replace(ctx, s)
		})
	}},
	{"clock jumps", hasClock, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			s.clockJumps = true
			err := r.fleet.replace(ctx, s)
			s.clockJumps = false
			r.wait(ctx, lease+span(dice, lease*2))
			return errors.Join(err, r.fleet.replace(ctx, s))
		})
	}},
}

// networkFaults are the faults of the link of a worker or an enqueuer.
var networkFaults = []fault{
	{"cut", hasLinks, func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			s.link.cut()
			r.wait(ctx, span(dice, lease*3/2))
			return s.link.mend()
		})
	}},
	{"reset", hasLinks, disturbed("reset_peer", answers, 500*time.Millisecond, nil)},
	{"stall", hasLinks, disturbed("timeout", requests, lease*2, nil)},
	{"half-open", hasLinks, disturbed("timeout", answers, lease*2, nil)},
	{"silence", hasLinks, silenced},
	{"throttle", hasLinks, disturbed("bandwidth", answers, lease, map[string]int{"rate": 4})},
	{"delay", hasLinks, disturbed("latency", requests, lease, map[string]int{"latency": 100, "jitter": 100})},
	{"crumble", hasLinks, disturbed("limit_data", answers, lease, map[string]int{"bytes": 3000})},
}

func disturbed(kind, direction string, longest time.Duration, attributes map[string]int) func(context.Context, *Run, *rand.Rand) error {
	return func(ctx context.Context, r *Run, dice *rand.Rand) error {
		return r.inject(dice, "", func(s *slot) error {
			if err := s.link.disturb(kind, direction, attributes); err != nil {
				return err
			}
			r.wait(ctx, span(dice, longest))
			s.link.heal()
			return nil
		})
	}
}

// serverFaults are the faults of the run's own server.
var serverFaults = []fault{
	{"restart the server", ownServer, onServer(func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return r.db.restart(ctx, false)
	})},
	{"kill the server", ownServer, onServer(func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return r.db.restart(ctx, true)
	})},
	{"kill the standby", hasStandby, onServer(func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return r.db.standby.restart(ctx, syscall.SIGKILL)
	})},
	// The server is gone, and its standby takes its place.
	{"fail over", hasStandby, onServer(func(ctx context.Context, r *Run, _ *rand.Rand) error {
		r.db.own.end(syscall.SIGKILL)
		if err := r.db.promote(ctx); err != nil {
			return err
		}
		return r.db.exchange(ctx)
	})},
	// The standby takes the place of a server that still listens to some.
	{"split the brain", hasStandby, onServer(func(ctx context.Context, r *Run, dice *rand.Rand) error {
		if err := r.db.promote(ctx); err != nil {
			return err
		}
		r.wait(ctx, span(dice, lease*2))
		return r.db.exchange(ctx)
	})},
}

// onServer injects a fault into the servers of the run, one at a time, and always
// completes it.
func onServer(do func(context.Context, *Run, *rand.Rand) error) func(context.Context, *Run, *rand.Rand) error {
	return func(ctx context.Context, r *Run, dice *rand.Rand) error {
		if !r.db.mu.TryLock() {
			return errBusy
		}
		defer r.db.mu.Unlock()
		ctx = context.WithoutCancel(ctx)
		return errors.Join(do(ctx, r, dice), r.db.inStep(ctx))
	}
}
