package falldue

import (
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// finish drops runs that are settled, and notifies the pollers of the tasks that
// wait again.
func (s *settler) finish(batch []*taskRun, lost map[int64]bool, mode locking) {
	s.leases.drop(batch...)
	for _, r := range batch {
		if lost[r.claim.ID] {
			r.endedByDoneTx()
		}
	}
	s.ended.count(batch, lost)
	var freed []string // limits
	s.flows.ended(batch, lost)
	for _, r := range batch {
		for _, l := range r.claim.Limits { // that of a rate is not free, which costs a claim
			freed = append(freed, l.Name)
		}
		if lost[r.claim.ID] {
			// After a repeat, this worker's own first try may have settled it.
			if !r.end.MaybeSettled && mode == waitForLocks {
				s.events.leaseLost(r.claim, r.lostOutcome(), "before it was settled")
			}
			if r.failure != nil && r.end.State == statements.StateDone {
				s.events.failedAfterDoneTx(r, r.failure)
			}
			s.observer.ended(r, r.lostOutcome(), 0)
			continue
		}
		if r.failure != nil || r.end.State == statements.StateDead {
			s.report(r)
		}
		next := time.Duration(0)
		if to := r.end.State; to == statements.StateOpen || to == statements.StateSnoozed {
			at, wait := r.claim.From, store.Duration(r.end.Wait)
			at.State, at.Attempts = to, r.claim.Attempts+r.end.AttemptsDelta
			if to == statements.StateOpen {
				wait += r.ruleOf(at).delayAfter(at.Attempts)
			}
			s.signals.hint(r.queue, at, wait)
			next = wait
		}
		s.observer.ended(r, outcomeOf(&r.end, r.failure), next)
	}
	if len(freed) > 0 {
		s.signals.freed(freed)
	}
}

// report reports a failure that is settled.
func (s *settler) report(r *taskRun) {
	switch f := r.failure; {
	case r.end.State == statements.StateDead && f == nil && r.claim.Exhausted && !r.claim.Previous.Valid:
		s.deaths.add(beyond{r.queue, r.claim.From.Kind, r.limit(), r.maxAttempts()})
	case r.end.State == statements.StateDead:
		stack := ""
		if f != nil {
			stack = f.stack.V
		}
		s.events.died(r, r.whyDead(f), r.end.Error.V, stack)
	case r.end.Error.Valid:
		s.events.attemptFailed(r, f)
	}
}
