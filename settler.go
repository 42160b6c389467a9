package falldue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// settler ends claims in batches: what comes in while one batch is written is
// the next batch. So a single task is settled at once, and many cost little.
// Where many are to come it lingers, since each batch costs a commit. While many
// wait all the same, a second settler helps: one alone would leave the database
// idle while it reads an answer.
//
// A claim that cannot be settled, because the database refuses its end or
// somebody has locked its row, is parked and tried again later: the others do not
// wait for it.
type settler struct {
	settlerConfig
	in     chan *run
	more   chan struct{} // many wait; closed after in
	second *settler      // takes from in, too; nil where the database has one writer at a time
	done   chan struct{} // closed when the last batch is written

	parked  []*run
	tries   int       // of what is parked
	nextTry time.Time // of what is parked
}

// settlerConfig is what a settler works with.
type settlerConfig struct {
	store           *store.Store
	workerID        string
	leaseLength     time.Duration
	shutdownTimeout time.Duration
	leases          *leases
	signals         signals
	events          events
}

func newSettler(cfg settlerConfig) *settler {
	s := &settler{settlerConfig: cfg, in: make(chan *run, 4*store.MaxBatch), more: make(chan struct{}, 1), done: make(chan struct{})}
	if !cfg.store.Server().Caps.SingleWriter {
		s.second = &settler{settlerConfig: cfg, in: s.in, more: s.more}
	}
	return s
}

const (
	// linger is how long a settler waits for a batch to fill up while the worker
	// holds at least enough claims.
	linger = 2 * time.Millisecond
	// enough is how many claims make a batch that is worth its commit.
	enough = store.MaxBatch / 4
)

// behind reports whether a whole batch waits for those that are being written:
// more tasks would only wait, too, and hold handlers up.
func (s *settler) behind() bool { return len(s.in) >= store.MaxBatch }

// work writes batches until in is closed and empty, with the second settler's
// help. Once ctx has ended it gives up what the database does not take.
func (s *settler) work(ctx context.Context) {
	defer close(s.done)
	var helping sync.WaitGroup
	if s.second != nil {
		helping.Go(func() { s.second.each(ctx, nil, s.more) })
	}
	s.each(ctx, s.in, nil)
	helping.Wait()
}

// each writes a batch at each run that comes in, or each time there is more,
// until that is closed.
func (s *settler) each(ctx context.Context, in <-chan *run, more <-chan struct{}) {
	batch := make([]*run, 0, store.MaxBatch)
	for open := true; open; {
		var retry <-chan time.Time
		if len(s.parked) > 0 {
			retry = time.After(time.Until(s.nextTry))
		}
		var first *run
		batch = batch[:0]
		select {
		case first, open = <-in:
			if open {
				batch = s.gather(append(batch, first), s.leases.count() >= enough)
			}
		case _, open = <-more:
			batch = s.gather(batch, false)
		case <-retry:
		}
		if in != nil && len(s.in) >= enough {
			signal(s.more)
		}
		s.signals.room() // pollers may have waited since the settlers were behind
		s.writeAll(ctx, batch, false)
		if len(s.parked) > 0 && !time.Now().Before(s.nextTry) {
			s.tryParked(ctx)
		}
	}
	if in != nil {
		close(s.more)
	}
	s.end(ctx)
}

// end tries what is parked for as long as handlers may take to stop.
func (s *settler) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.shutdownTimeout)
	defer cancel()
	for ; len(s.parked) > 0 && ctx.Err() == nil; s.tryParked(ctx) {
		_ = pause(ctx, time.Until(s.nextTry))
	}
	for _, r := range s.parked {
		s.abandon(r)
	}
	s.parked = nil
}

// tryParked tries to settle what is parked.
func (s *settler) tryParked(ctx context.Context) {
	list := s.parked
	s.parked = nil
	s.writeAll(ctx, s.stillHeld(ctx, list), true)
	s.tries++
	s.nextTry = time.Now().Add(errorPause(s.tries))
	if len(s.parked) == 0 {
		s.tries = 0
	}
}

// writeAll settles a list of any length, in which a task may be twice.
func (s *settler) writeAll(ctx context.Context, list []*run, unlocked bool) {
	for len(list) > 0 {
		n := min(len(list), store.MaxBatch)
		batch, again := distinct(list[:n])
		s.write(ctx, batch, unlocked)
		list = append(again, list[n:]...)
	}
}

// distinct sorts runs by their tasks, and splits off those whose task is in the
// list twice. A worker that lost a task and claimed it anew holds two claims of
// it, and the database's answers name tasks, not claims.
//
// Leases are extended in the order of ids, too: no two statements of a worker then
// wait for each other's rows.
func distinct(list []*run) (batch, again []*run) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, byTask)
	batch = sorted[:0]
	for _, r := range sorted {
		if len(batch) > 0 && batch[len(batch)-1].claim.ID == r.claim.ID {
			again = append(again, r)
		} else {
			batch = append(batch, r)
		}
	}
	return batch, again
}

// gather adds what is already waiting, and where busy what comes in soon.
func (s *settler) gather(batch []*run, busy bool) []*run {
	var over <-chan time.Time
	if busy {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		over = timer.C
	}
	for len(batch) < store.MaxBatch {
		select {
		case r, ok := <-s.in:
			if !ok {
				return batch
			}
			batch = append(batch, r)
			continue
		default:
		}
		if !busy {
			return batch
		}
		select {
		case r, ok := <-s.in:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		case <-over:
			return batch
		}
	}
	return batch
}

// write settles a batch. While the database does not answer it tries again, for
// as long as the leases hold: after that other workers run the tasks again, and
// how these runs ended no longer counts. If unlocked, as after a failure, it parks
// what somebody else has locked instead of waiting for it.
func (s *settler) write(ctx context.Context, batch []*run, unlocked bool) {
	for try := 0; len(batch) > 0; try++ {
		unlocked = unlocked || try > 0
		left, late, err := s.try(ctx, batch, unlocked)
		switch {
		case err == nil:
			locked := setOf(left.Locked)
			for _, r := range batch {
				if locked[r.claim.ID] {
					s.parked = append(s.parked, r)
				}
			}
			s.finish(slices.DeleteFunc(batch, func(r *run) bool { return locked[r.claim.ID] }), setOf(left.Lost), unlocked)
			return
		case late || s.store.Server().Classify(err) != dialect.Other:
			s.events.settleFailed(len(batch), err)
			_ = pause(ctx, errorPause(try))
			batch = s.stillHeld(ctx, batch)
		case len(batch) > 1:
			// One of them is the reason: the others need not share its fate.
			half := len(batch) / 2
			s.write(ctx, batch[:half], unlocked)
			s.write(ctx, batch[half:], unlocked)
			return
		default:
			r := batch[0]
			if r.giveUp.IsZero() {
				r.giveUp = time.Now().Add(s.leaseLength)
				s.events.settleRefused(r.claim, err)
			}
			s.parked = append(s.parked, r)
			return
		}
	}
}

// try settles a batch once, and reports whether the time for it ran out.
func (s *settler) try(ctx context.Context, batch []*run, unlocked bool) (left store.Unsettled, late bool, err error) {
	list := make([]*store.Settlement, len(batch))
	for i, r := range batch {
		list[i] = &r.end
	}
	settle, limit := s.store.Settle, settleTimeout
	if unlocked {
		settle, limit = s.store.SettleUnlocked, statementTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	left, err = settle(ctx, s.workerID, list)
	return left, ctx.Err() != nil, err
}

// stillHeld keeps of a batch the runs whose leases hold and that are not given up:
// none once ctx has ended.
func (s *settler) stillHeld(ctx context.Context, batch []*run) []*run {
	now := time.Now()
	live := batch[:0]
	for _, r := range batch {
		if ctx.Err() == nil && r.lease.holds(now) && (r.giveUp.IsZero() || now.Before(r.giveUp)) {
			live = append(live, r)
			continue
		}
		s.abandon(r)
	}
	return live
}

// abandon lets go of a task that could not be settled. When its lease is over it
// runs again.
func (s *settler) abandon(r *run) {
	s.events.notSettled(r.claim)
	s.leases.drop(r)
}

// finish lets go of runs that are settled, and tells pollers which tasks wait now.
func (s *settler) finish(batch []*run, lost map[int64]bool, repeated bool) {
	s.leases.drop(batch...)
	for _, r := range batch {
		if lost[r.claim.ID] {
			// After a repeat it may be this worker's own first try that settled it.
			if !r.end.MaybeSettled && !repeated {
				s.events.leaseLost(r.claim, "before the task was settled")
			}
			continue
		}
		if to := r.end.State; to == statements.StateOpen || to == statements.StateSnoozed {
			at, wait := r.claim.Was, store.Duration(r.end.Wait)
			at.State, at.Attempts = to, r.claim.Attempts+r.end.AttemptsDelta
			if to == statements.StateOpen {
				wait += r.rule.delayAfter(at.Attempts)
			}
			s.signals.hint(r.queue, at, wait)
		}
	}
}
