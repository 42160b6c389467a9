package run

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Settler settles runs in batches. The runs that end while a batch is written are the next batch, so
// that a single task is settled immediately, and many tasks cost little. While the worker has many
// claims, the settler waits a little for more runs, since each batch costs a commit. While many runs
// wait nevertheless, a second settler helps: a single settler leaves the database idle while it reads
// an answer.
//
// A run that cannot be settled, because the database refuses the settlement or another transaction has
// locked the row, is parked and tried again later. Other runs do not wait for it.
type Settler struct {
	SettlerConfig
	exhausted    *exhaustedLog
	In           chan *Run     // runs that ended
	assistWanted chan struct{} // signalled when many runs wait; closed after In
	second       *Settler      // receives from In, too; nil if the database has one writer at a time
	Done         chan struct{} // closed when the last batch is written

	batchSize retry.BatchSize
	parked    []*Run
	tries     int       // to settle the parked runs
	nextTry   time.Time // to settle the parked runs
}

// SettlerConfig has the settings of a settler, and the parts of the worker that it uses.
type SettlerConfig struct {
	Table           settleTable
	SingleWriter    bool // the database has one writer at a time
	WorkerID        string
	LeaseLength     time.Duration
	ShutdownTimeout time.Duration
	Leases          *lease.Extender
	Pollers         waker
	Ended           *EndedRuns
	Log             *slog.Logger
	Observer        Observer
	Flows           flows
}

func (c SettlerConfig) events() events { return events{c.Log} }

// settleTable has the statements of a settler. Settle waits for rows that another
// transaction has locked, and SettleUnlocked skips them. Ended is called with claims
// that were settled.
type settleTable interface {
	Settle(ctx context.Context, workerID string, batch []*store.Settlement) (store.Unsettled, error)
	SettleUnlocked(ctx context.Context, workerID string, batch []*store.Settlement) (store.Unsettled, error)
	Ended(claims []*store.Claim)
	Classify(error) dialect.Class
}

// locking is how a settle treats rows that another transaction has locked.
type locking int

const (
	waitForLocks locking = iota
	skipLocked
)

// NewSettler returns a settler.
func NewSettler(cfg SettlerConfig) *Settler {
	log := &exhaustedLog{events: events{cfg.Log}}
	in, assistWanted := make(chan *Run, 4*store.MaxBatch), make(chan struct{}, 1)
	var second *Settler
	if !cfg.SingleWriter {
		second = &Settler{SettlerConfig: cfg, exhausted: log, batchSize: retry.NewBatchSize(), In: in, assistWanted: assistWanted}
	}
	return &Settler{SettlerConfig: cfg, exhausted: log, batchSize: retry.NewBatchSize(), In: in, assistWanted: assistWanted, second: second, Done: make(chan struct{})}
}

const (
	// linger is how long the settler waits for more runs while the worker holds at
	// least minBatch claims.
	linger = 2 * time.Millisecond
	// minBatch is the size of a batch that is worth a commit.
	minBatch = store.MaxBatch / 4
)

// Behind reports whether a whole batch waits in addition to the batches that are being written. The
// handlers of further tasks would then wait for the settler.
func (s *Settler) Behind() bool { return len(s.In) >= store.MaxBatch }

// Full reports whether returning handlers wait for the settlers.
func (s *Settler) Full() bool { return len(s.In) == cap(s.In) }

// Work writes batches until In is closed and empty, together with the second settler. Once ctx has
// ended, Work gives up runs that the database does not settle.
func (s *Settler) Work(ctx context.Context) {
	defer close(s.Done)
	defer s.exhausted.report()
	var helping sync.WaitGroup
	if s.second != nil {
		helping.Go(func() { s.second.writeLoop(ctx, nil, s.assistWanted) })
	}
	s.writeLoop(ctx, s.In, nil)
	helping.Wait()
}

// writeLoop writes a batch for each run that it receives from in, or for each signal
// on assistWanted, until that channel is closed. The other channel is nil.
func (s *Settler) writeLoop(ctx context.Context, in <-chan *Run, assistWanted <-chan struct{}) {
	batch := make([]*Run, 0, store.MaxBatch)
	for open := true; open; {
		var again <-chan time.Time
		if len(s.parked) > 0 {
			again = time.After(time.Until(s.nextTry))
		}
		var first *Run
		batch = batch[:0]
		select {
		case first, open = <-in:
			if open {
				batch = s.gather(append(batch, first), s.Leases.Count() >= minBatch)
			}
		case _, open = <-assistWanted:
			batch = s.gather(batch, false)
		case <-again:
		}
		if in != nil && len(s.In) >= minBatch {
			retry.Signal(s.assistWanted)
		}
		s.Pollers.WakeWaiting() // pollers may have waited while the settlers were behind
		s.writeAll(ctx, batch, waitForLocks)
		if len(s.parked) > 0 && !time.Now().Before(s.nextTry) {
			s.tryParked(ctx)
		}
	}
	if in != nil {
		close(s.assistWanted)
	}
	s.drainParked(ctx)
}

// drainParked tries to settle the parked runs for up to the shutdown timeout, or
// until ctx ends.
func (s *Settler) drainParked(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.ShutdownTimeout)
	defer cancel()
	for ; len(s.parked) > 0 && ctx.Err() == nil; s.tryParked(ctx) {
		_ = retry.Pause(ctx, time.Until(s.nextTry))
	}
	for _, r := range s.parked {
		s.abandon(r)
	}
	s.parked = nil
}

// maxAlone is how many runs that were refused one by one are tried again at a time. New runs wait in
// the meantime.
const maxAlone = 50

// tryParked tries to settle the parked runs. Runs that were refused one by one come last.
func (s *Settler) tryParked(ctx context.Context) {
	n := len(s.parked)
	var others, alone []*Run
	for _, r := range s.stillHeld(ctx, s.parked) {
		if r.refused == nil {
			others = append(others, r)
		} else {
			alone = append(alone, r)
		}
	}
	s.parked = nil
	if len(alone) > maxAlone { // the others come first the next time
		s.parked, alone = slices.Clone(alone[maxAlone:]), alone[:maxAlone]
	}
	s.batchSize.Failures = 0
	s.writeAll(ctx, others, skipLocked)
	s.writeAll(ctx, alone, skipLocked)
	if s.tries++; len(s.parked) < n {
		s.tries = 0 // the database settles some of them
	}
	s.nextTry = time.Now().Add(retry.ErrorPause(s.tries))
}

// writeAll settles a list of any length, in which a task may occur twice.
func (s *Settler) writeAll(ctx context.Context, list []*Run, mode locking) {
	for len(list) > 0 {
		n := min(len(list), store.MaxBatch)
		batch, again := distinct(list[:n])
		s.write(ctx, batch, mode)
		list = append(again, list[n:]...)
	}
}

// distinct sorts runs by their tasks, and splits off the later runs of a task that occurs twice. A
// worker that lost a task and claimed it again has two claims of the task, and the database's answers
// name tasks, not claims.
//
// The extender of leases uses the same order, so that no two statements of a worker wait for each
// other's rows.
func distinct(list []*Run) (batch, again []*Run) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, byTask)
	batch = sorted[:0]
	for _, r := range sorted {
		if len(batch) > 0 && batch[len(batch)-1].Claim.ID == r.Claim.ID {
			again = append(again, r)
		} else {
			batch = append(batch, r)
		}
	}
	return batch, again
}

// gather adds to a batch the runs that already wait and, if busy, runs that end within linger.
func (s *Settler) gather(batch []*Run, busy bool) []*Run {
	var over <-chan time.Time
	if busy {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		over = timer.C
	}
	for len(batch) < store.MaxBatch {
		select {
		case r, ok := <-s.In:
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
		case r, ok := <-s.In:
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

// write settles a batch in parts. It parks runs whose settlements the database refuses one by one, and
// all runs that are left if the database seems to refuse every settlement. After a lost connection it
// waits, as long as the leases are valid and ctx has not ended. With skipLocked, and after a failure,
// it parks runs whose rows another transaction has locked instead of waiting for the locks.
func (s *Settler) write(ctx context.Context, batch []*Run, mode locking) {
	for len(batch) > 0 {
		n := min(len(batch), s.batchSize.Size)
		left, late, err := s.try(ctx, batch[:n], mode)
		if err == nil {
			s.batchSize.Accepted()
			s.settled(ctx, batch[:n], left, mode)
			batch = batch[n:]
			continue
		}
		waited := late && mode == waitForLocks // perhaps for locks
		mode = skipLocked
		if waited {
			s.events().settleFailed(n, err)
			continue
		}
		if s.Table.Classify(err) == dialect.Unencodable && !batch[0].plain {
			for _, r := range batch[:n] { // a done task with odd texts is better than another run
				r.plain = true
				r.end.ToASCII()
			}
			continue
		}
		failure, wait := s.batchSize.Failed(n, s.Table.Classify(err), late)
		if n == 1 {
			s.park(batch[0], err, failure == retry.Outage || ctx.Err() != nil)
			batch = batch[1:]
		} else if failure != retry.Refused {
			s.events().settleFailed(n, err)
		}
		if failure == retry.Outage {
			_ = retry.Pause(ctx, wait)
			batch = s.stillHeld(ctx, batch)
		} else if wait > 0 {
			s.parked = append(s.parked, batch...)
			s.nextTry = time.Now().Add(wait)
			return
		}
	}
}

// settled finishes the runs of a batch, except those whose rows were locked, which it
// parks.
func (s *Settler) settled(ctx context.Context, batch []*Run, left store.Unsettled, mode locking) {
	locked, lost := store.SetOf(left.Locked), store.SetOf(left.Lost)
	var gone []*lease.Lease
	for _, r := range batch {
		if lost[r.Claim.ID] {
			gone = append(gone, &r.Lease)
		}
		if locked[r.Claim.ID] {
			r.giveUp, r.refused = time.Time{}, nil
			s.parked = append(s.parked, r)
		}
	}
	s.Leases.Ended(ctx, gone...)
	s.finish(slices.DeleteFunc(batch, func(r *Run) bool { return locked[r.Claim.ID] }), lost, mode)
}

// park keeps a run whose settlement failed with err, to try again later, for the length of a lease. An
// outage does not count as a refusal of the run.
func (s *Settler) park(r *Run, err error, outage bool) {
	first := r.refused == nil
	if !outage {
		r.refused = err
	}
	if r.giveUp.IsZero() {
		r.giveUp = time.Now().Add(s.LeaseLength)
	}
	if first && !outage {
		s.events().settleRefused(r.Claim, err)
	}
	s.parked = append(s.parked, r)
}

// try settles a batch once, and reports whether it timed out.
func (s *Settler) try(ctx context.Context, batch []*Run, mode locking) (left store.Unsettled, late bool, err error) {
	list := make([]*store.Settlement, len(batch))
	for i, r := range batch {
		list[i] = &r.end
	}
	settle, limit := s.Table.Settle, retry.SettleTimeout
	if mode == skipLocked {
		settle = s.Table.SettleUnlocked
		if s.batchSize.Size == store.MaxBatch {
			limit = retry.SlowSettleTimeout
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	left, err = settle(ctx, s.WorkerID, list)
	late = ctx.Err() != nil
	s.Observer.Settled(len(batch), lease.ReallyLost(left, leasesOf(batch)), start, err)
	for _, r := range batch {
		r.unsure = r.unsure || err != nil
	}
	return left, late, err
}

// stillHeld returns the runs of a batch whose leases are valid and whose time to give up has not come,
// or none once ctx has ended. It abandons the others.
func (s *Settler) stillHeld(ctx context.Context, batch []*Run) []*Run {
	now := time.Now()
	live := batch[:0]
	for _, r := range batch {
		if ctx.Err() == nil && r.Lease.Holds(now) && (r.giveUp.IsZero() || now.Before(r.giveUp)) {
			live = append(live, r)
			continue
		}
		s.abandon(r)
	}
	return live
}

// abandon drops a run that could not be settled. Its task runs again when the lease
// has expired.
func (s *Settler) abandon(r *Run) {
	s.events().notSettled(r.Claim, r.refused)
	s.Leases.Drop(&r.Lease)
	s.Observer.Ended(r, outcome.Lost, 0)
}

// finish drops settled runs, and notifies the pollers of tasks that wait again.
func (s *Settler) finish(batch []*Run, lost map[int64]bool, mode locking) {
	s.Leases.Drop(leasesOf(batch)...)
	for _, r := range batch {
		if lost[r.Claim.ID] {
			r.endedByDoneTx()
		}
	}
	s.Ended.count(batch, lost)
	var freed []string // limits
	var limited []*store.Claim
	s.tellFlows(batch, lost)
	for _, r := range batch {
		waits := r.end.State == statements.StateOpen || r.end.State == statements.StateSnoozed
		for _, l := range r.Claim.Limits {
			keeps := waits && l.Form.Ordered() && !lost[r.Claim.ID] // its place in a sequence
			if !keeps && !l.Form.Timed() {
				freed = append(freed, l.Name)
			}
		}
		if len(r.Claim.Limits) > 0 && !lost[r.Claim.ID] {
			limited = append(limited, r.Claim)
		}
		if lost[r.Claim.ID] {
			// After a failed try, that try may have settled the task.
			if !r.end.MaybeSettled && mode == waitForLocks {
				s.events().leaseLost(r.Claim, r.LostOutcome(), "before its outcome was recorded")
			}
			if r.Failure != nil && r.end.State == statements.StateDone {
				s.events().failedAfterDoneTx(r, r.Failure)
			}
			s.Observer.Ended(r, r.LostOutcome(), 0)
			continue
		}
		if r.Failure != nil || r.end.State == statements.StateDead {
			s.report(r)
		}
		next := time.Duration(0)
		if to := r.end.State; to == statements.StateOpen || to == statements.StateSnoozed {
			at, wait := r.Claim.From, store.Duration(r.end.Wait)
			at.State, at.Attempts = to, r.Claim.Attempts+r.end.AttemptsDelta
			if to == statements.StateOpen {
				wait += r.policyOf(at).DelayAfter(at.Attempts)
			}
			s.Pollers.Hint(r.Queue, at, wait)
			next = wait
		}
		s.Observer.Ended(r, outcome.Of(&r.end, r.Failure), next)
	}
	if len(freed) > 0 {
		s.Table.Ended(limited)
		s.Pollers.Freed(freed)
	}
}

// tellFlows reports members and waiters of flows that the settler or the handlers have ended.
func (s *Settler) tellFlows(batch []*Run, lost map[int64]bool) {
	var members, gone []int64
	for _, r := range batch {
		e := &r.end
		if !e.Member && !e.Waiter {
			continue
		}
		finished := e.State == statements.StateDone || e.State == statements.StateDead || e.State == statements.StateCancelled
		maybeSettled := e.MaybeSettled || r.unsure && finished // by the handler, or by an earlier try of this worker
		if lost[r.Claim.ID] && !maybeSettled || !lost[r.Claim.ID] && !finished {
			continue
		}
		if e.Member {
			members = append(members, r.Claim.ID)
		}
		if e.Waiter && e.State == statements.StateDone && !e.RetainDone {
			gone = append(gone, r.Claim.ID)
		}
	}
	if len(members)+len(gone) > 0 {
		s.Flows.Ended(members, gone)
	}
}

// report logs the failure of a settled run.
func (s *Settler) report(r *Run) {
	switch f := r.Failure; {
	case r.end.State == statements.StateDead && f == nil && !r.end.Error.Valid: // its attempts have failed
		s.exhausted.add(exhausted{r.Queue, r.Claim.From.Kind, r.LimitText(), r.MaxAttempts()})
	case r.end.State == statements.StateDead:
		stack := ""
		if f != nil {
			stack = f.Stack.V
		}
		s.events().died(r, r.WhyDead(f), r.end.Error.V, stack)
	case r.end.Error.Valid:
		s.events().attemptFailed(r, f)
	}
}

// SettleOne settles a run that the dispatcher has passed on, and reports whether its claim was
// lost.
func (s *Settler) SettleOne(ctx context.Context, r *Run) (lost bool, err error) {
	if len(s.In) == 0 {
		return true, nil // the claim was lost during the run, which the dispatcher has reported
	}
	batch, mode := []*Run{r}, waitForLocks
	for try := 0; ; try++ {
		left, late, err := s.try(ctx, batch, mode)
		switch {
		case err != nil && late && mode == waitForLocks:
			mode = skipLocked
			continue
		case err != nil:
			return false, err
		case len(left.Locked) == 0:
			if lost = len(left.Lost) > 0; lost {
				s.Leases.Gone(ctx, &r.Lease) // a test may move the clock, so that leases end early
				s.Leases.Ended(ctx, &r.Lease)
			}
			s.finish(batch, store.SetOf(left.Lost), mode)
			s.exhausted.report()
			return lost, nil
		}
		if err := retry.Pause(ctx, retry.ErrorPause(try)); err != nil {
			return false, err
		}
	}
}
