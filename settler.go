package falldue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// settler ends claims in batches: what comes in while one batch is written is
// the next batch. So a single task is settled at once, and many cost little.
// Where many are to come it lingers, since each batch costs a commit. While much
// waits all the same, a second one helps it: one alone would leave the database
// idle while it has its answer read.
//
// One claim that cannot be settled, because the database refuses what it has to
// say or somebody has locked its row, is set aside and tried again later: the
// others do not wait for it.
type settler struct {
	w      *worker
	in     chan *run
	more   chan struct{} // much waits; closed after in
	second *settler      // takes of in, too; nil where the database has one writer at a time
	done   chan struct{} // closed when the last batch is written

	aside   []*run
	tries   int       // of what is aside
	nextTry time.Time // of what is aside
}

func newSettler(w *worker) *settler {
	s := &settler{w: w, in: make(chan *run, 4*maxBatch), more: make(chan struct{}, 1), done: make(chan struct{})}
	if !w.q.store.server.Caps.SingleWriter {
		s.second = &settler{w: w, in: s.in, more: s.more}
	}
	return s
}

const (
	// linger is how long a settler waits for a batch to fill up while the worker
	// holds at least enough.
	linger = 2 * time.Millisecond
	// enough is how many claims make a batch that is worth its commit.
	enough = maxBatch / 4
)

// behind tells whether a whole batch waits for those that are being written:
// more tasks would only wait, too, and hold handlers up.
func (s *settler) behind() bool { return len(s.in) >= maxBatch }

// loop writes batches until in is closed and empty, with the second settler's
// help.
func (s *settler) loop() {
	defer close(s.done)
	var helping sync.WaitGroup
	if s.second != nil {
		helping.Go(func() { s.second.each(nil, s.more) })
	}
	s.each(s.in, nil)
	helping.Wait()
}

// each writes a batch at each run that comes in, or each time there is more,
// until that is closed.
func (s *settler) each(in <-chan *run, more <-chan struct{}) {
	batch := make([]*run, 0, maxBatch)
	for open := true; open; {
		var retry <-chan time.Time
		if len(s.aside) > 0 {
			retry = time.After(time.Until(s.nextTry))
		}
		var first *run
		batch = batch[:0]
		select {
		case first, open = <-in:
			if open {
				batch = s.gather(append(batch, first), s.w.leases.count() >= enough)
			}
		case _, open = <-more:
			batch = s.gather(batch, false)
		case <-retry:
		}
		if in != nil && len(s.in) >= enough {
			signal(s.more)
		}
		for _, p := range s.w.pollers {
			signal(p.freed) // it may have waited since the settlers were behind
		}
		s.writeAll(batch, false)
		if len(s.aside) > 0 && !time.Now().Before(s.nextTry) {
			s.again()
		}
	}
	if in != nil {
		close(s.more)
	}
	s.end()
}

// end tries what is aside for as long as handlers may take to stop.
func (s *settler) end() {
	for over := time.Now().Add(s.w.q.cfg.ShutdownTimeout); len(s.aside) > 0 && time.Now().Before(over); s.again() {
		_ = pause(context.Background(), time.Until(s.nextTry))
	}
	for _, r := range s.aside {
		s.abandon(r)
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
func (s *settler) writeAll(list []*run, wary bool) {
	for len(list) > 0 {
		n := min(len(list), maxBatch)
		batch, again := distinct(list[:n])
		s.write(batch, wary)
		list = append(again, list[n:]...)
	}
}

// distinct sorts runs by their tasks, and parts from them what is in it again. A
// worker that lost a task and claimed it anew holds two claims of it, and answers
// of the database name tasks, not claims.
//
// In the order of ids leases are extended, too: no two statements of a worker
// then wait for each other's rows.
func distinct(list []*run) (batch, again []*run) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, byTask)
	batch = sorted[:0]
	for _, r := range sorted {
		if len(batch) > 0 && batch[len(batch)-1].claim.id == r.claim.id {
			again = append(again, r)
		} else {
			batch = append(batch, r)
		}
	}
	return batch, again
}

// byTask compares runs by their task's id, and of one task by the age of the claim.
func byTask(a, b *run) int {
	return cmp.Or(cmp.Compare(a.claim.id, b.claim.id), cmp.Compare(a.claim.fence, b.claim.fence))
}

// gather adds what is already waiting, and where busy what comes in soon.
func (s *settler) gather(batch []*run, busy bool) []*run {
	var over <-chan time.Time
	if busy {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		over = timer.C
	}
	for len(batch) < maxBatch {
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
// what these wanted to say no longer counts. If it is wary, as it is after a
// failure, it sets aside what somebody else has locked.
func (s *settler) write(batch []*run, wary bool) {
	for try := 0; len(batch) > 0; try++ {
		lost, locked, late, err := s.try(batch, wary || try > 0)
		switch {
		case err == nil:
			stuck := setOf(locked)
			for _, r := range batch {
				if stuck[r.claim.id] {
					s.aside = append(s.aside, r)
				}
			}
			s.finish(slices.DeleteFunc(batch, func(r *run) bool { return stuck[r.claim.id] }), setOf(lost), wary || try > 0)
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
			r := batch[0]
			if r.giveUp.IsZero() {
				r.giveUp = time.Now().Add(s.w.q.cfg.Lease)
				s.w.q.cfg.Logger.Warn("falldue: cannot settle", "task", r.claim.id, "kind", r.claim.was.kind, "error", err)
			}
			s.aside = append(s.aside, r)
			return
		}
	}
}

// try settles a batch once, and tells whether the time for it ran out.
func (s *settler) try(batch []*run, wary bool) (lost, locked []int64, late bool, err error) {
	list := make([]*settlement, len(batch))
	for i, r := range batch {
		list[i] = &r.end
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
func (s *settler) still(batch []*run) []*run {
	now := time.Now()
	live := batch[:0]
	for _, r := range batch {
		if r.holds(now) && (r.giveUp.IsZero() || now.Before(r.giveUp)) {
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
	s.w.q.cfg.Logger.Error("falldue: task could not be settled while its lease held; it will run again", "task", r.claim.id, "kind", r.claim.was.kind)
	s.w.leases.drop(r)
}

// finish lets go of runs that are settled, and tells pollers what waits now.
func (s *settler) finish(batch []*run, lost map[int64]bool, repeated bool) {
	s.w.leases.drop(batch...)
	for _, r := range batch {
		if lost[r.claim.id] {
			// After a repeat it may be this worker's own first try that settled it.
			if !r.end.doubtful && !repeated {
				s.w.q.cfg.Logger.Warn("falldue: lease lost before the task was settled", "task", r.claim.id, "kind", r.claim.was.kind, "attempt", r.claim.attempts)
			}
			continue
		}
		if to := r.end.to; to == statements.StateOpen || to == statements.StateSnoozed {
			at, wait := r.claim.was, r.end.wait
			at.state, at.attempts = to, r.claim.attempts+r.end.more
			if to == statements.StateOpen {
				wait += r.rule.delayAfter(at.attempts)
			}
			r.poller.tell(at, wait)
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
