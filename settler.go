package falldue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// settler ends claims in batches: what comes in while one batch is written is
// the next batch. So a single task is settled at once, and many cost little.
// Where many are to come it lingers, since each batch costs a commit.
//
// One claim that cannot be settled, because the database refuses what it has to
// say or somebody has locked its row, is set aside and tried again later: the
// others do not wait for it.
type settler struct {
	w    *worker
	in   chan ended
	done chan struct{} // closed when the last batch is written

	aside   []ended
	tries   int       // of what is aside
	nextTry time.Time // of what is aside
}

// ended is a run and how it ends.
type ended struct {
	run *run
	settlement
	giveUp time.Time // when to try no longer; zero while the database did not refuse it
}

func newSettler(w *worker) *settler {
	return &settler{w: w, in: make(chan ended, 4*maxBatch), done: make(chan struct{})}
}

// linger is how long a settler waits for a batch to fill up while the worker
// holds at least a quarter of one.
const linger = 2 * time.Millisecond

// loop writes batches until in is closed and empty.
func (s *settler) loop() {
	defer close(s.done)
	batch := make([]ended, 0, maxBatch)
	for {
		var retry <-chan time.Time
		if len(s.aside) > 0 {
			retry = time.After(time.Until(s.nextTry))
		}
		select {
		case first, ok := <-s.in:
			if !ok {
				s.end()
				return
			}
			batch = s.gather(append(batch[:0], first), s.w.leases.count() >= maxBatch/4)
			s.writeAll(slices.Clone(batch), false)
		case <-retry:
		}
		if len(s.aside) > 0 && !time.Now().Before(s.nextTry) {
			s.again()
		}
	}
}

// end tries what is aside for as long as handlers may take to stop.
func (s *settler) end() {
	for over := time.Now().Add(s.w.q.cfg.Grace); len(s.aside) > 0 && time.Now().Before(over); s.again() {
		_ = pause(context.Background(), time.Until(s.nextTry))
	}
	for _, e := range s.aside {
		s.abandon(e)
	}
}

// again tries what is aside.
func (s *settler) again() {
	list := s.aside
	s.aside = nil
	s.writeAll(s.still(list), true)
	s.tries++
	s.nextTry = time.Now().Add(errorPause(s.tries))
	if len(s.aside) == 0 {
		s.tries = 0
	}
}

// writeAll settles a list of any length, in which a task may be twice.
func (s *settler) writeAll(list []ended, wary bool) {
	for len(list) > 0 {
		part := distinct(list[:min(len(list), maxBatch)])
		list = list[len(part):]
		s.write(part, wary)
	}
}

// distinct is the beginning of a batch, as far as no task is in it twice. A worker
// that lost a task and claimed it anew holds two claims of it, and answers of
// the database name tasks, not claims.
func distinct(batch []ended) []ended {
	seen := make(map[int64]bool, len(batch))
	for i, e := range batch {
		if seen[e.id] {
			return batch[:i:i]
		}
		seen[e.id] = true
	}
	return batch
}

// gather adds what is already waiting, and where busy what comes in soon.
func (s *settler) gather(batch []ended, busy bool) []ended {
	var over <-chan time.Time
	if busy {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		over = timer.C
	}
	for len(batch) < maxBatch {
		select {
		case e, ok := <-s.in:
			if !ok {
				return batch
			}
			batch = append(batch, e)
			continue
		default:
		}
		if !busy {
			return batch
		}
		select {
		case e, ok := <-s.in:
			if !ok {
				return batch
			}
			batch = append(batch, e)
		case <-over:
			return batch
		}
	}
	return batch
}

// write settles a batch. While the database does not answer it tries again, for
// as long as the leases hold: after that other workers run the tasks again, and
// what these wanted to say no longer counts. If it is wary, as it is after a
// failure, it sets aside what somebody else has locked.
func (s *settler) write(batch []ended, wary bool) {
	// In the order in which leases are extended, too: no two statements of this
	// worker then wait for each other's rows.
	slices.SortFunc(batch, func(a, b ended) int { return cmp.Compare(a.id, b.id) })
	for try := 0; len(batch) > 0; try++ {
		lost, locked, late, err := s.try(batch, wary || try > 0)
		switch {
		case err == nil:
			stuck := setOf(locked)
			for _, e := range batch {
				if stuck[e.id] {
					s.aside = append(s.aside, e)
				}
			}
			s.finish(slices.DeleteFunc(batch, func(e ended) bool { return stuck[e.id] }), setOf(lost), wary || try > 0)
			return
		case late || s.w.q.store.server.Classify(err) != dialect.Other:
			s.w.q.cfg.Logger.Warn("falldue: cannot settle", "tasks", len(batch), "error", err)
			_ = pause(context.Background(), errorPause(try))
			batch = s.still(batch)
		case len(batch) > 1:
			// One of them is the reason: the others need not share its fate.
			half := len(batch) / 2
			s.write(batch[:half], wary)
			s.write(batch[half:], wary)
			return
		default:
			e := batch[0]
			if e.giveUp.IsZero() {
				e.giveUp = time.Now().Add(s.w.q.cfg.Lease)
				s.w.q.cfg.Logger.Warn("falldue: cannot settle", "task", e.id, "kind", e.run.claim.was.kind, "error", err)
			}
			s.aside = append(s.aside, e)
			return
		}
	}
}

// try settles a batch once, and tells whether the time for it ran out.
func (s *settler) try(batch []ended, wary bool) (lost, locked []int64, late bool, err error) {
	list := make([]settlement, len(batch))
	for i, e := range batch {
		list[i] = e.settlement
	}
	limit := settleTimeout
	if wary {
		limit = statementTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	lost, locked, err = s.w.q.store.settle(ctx, s.w.id, list, wary)
	return lost, locked, ctx.Err() != nil, err
}

// settleTimeout is how long a batch is waited for before it is asked whether
// somebody has locked one of its rows.
const settleTimeout = 3 * time.Second

// still keeps of a batch those whose leases hold, and that are not given up.
func (s *settler) still(batch []ended) []ended {
	now := time.Now()
	live := batch[:0]
	for _, e := range batch {
		if e.run.holds(now) && (e.giveUp.IsZero() || now.Before(e.giveUp)) {
			live = append(live, e)
			continue
		}
		s.abandon(e)
	}
	return live
}

// abandon lets go of a task that could not be settled. When its lease is over it
// runs again.
func (s *settler) abandon(e ended) {
	s.w.q.cfg.Logger.Error("falldue: task could not be settled while its lease held; it will run again", "task", e.id, "kind", e.run.claim.was.kind)
	s.w.leases.drop(e.run)
}

// finish lets go of runs that are settled, and tells pollers what waits now.
func (s *settler) finish(batch []ended, lost map[int64]bool, repeated bool) {
	runs := make([]*run, len(batch))
	for i, e := range batch {
		runs[i] = e.run
	}
	s.w.leases.drop(runs...)
	for _, e := range batch {
		if lost[e.id] {
			// After a repeat it may be this worker's own first try that settled it.
			if !e.doubtful && !repeated {
				s.w.q.cfg.Logger.Warn("falldue: lease lost before the task was settled", "task", e.id, "kind", e.run.claim.was.kind, "attempt", e.run.claim.attempts)
			}
			continue
		}
		if e.to == sqlgen.StateOpen || e.to == sqlgen.StateSnoozed {
			at := e.run.claim.was
			at.state, at.attempts = e.to, e.run.claim.attempts+e.more
			wait := e.wait
			if e.to == sqlgen.StateOpen {
				wait += e.run.rule.delayAfter(at.attempts)
			}
			e.run.poller.tell(at, wait)
		}
	}
}

// statementTimeout bounds each statement that no user waits for, so that a
// connection that hangs holds nothing up for ever.
const statementTimeout = 30 * time.Second

// errorPause is how long to leave a database alone that failed try times before.
func errorPause(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 10), 5*time.Second)
}
