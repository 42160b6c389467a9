package run

import (
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// finish drops runs that are settled, and notifies the pollers of the tasks that
// wait again.
func (s *Settler) finish(batch []*Run, lost map[int64]bool, mode locking) {
	s.Leases.held.drop(batch...)
	for _, r := range batch {
		if lost[r.Claim.ID] {
			r.endedByDoneTx()
		}
	}
	s.Ended.count(batch, lost)
	var freed []string // limits
	s.tellFlows(batch, lost)
	for _, r := range batch {
		for _, l := range r.Claim.Limits { // that of a rate is not free, which costs a claim
			freed = append(freed, l.Name)
		}
		if lost[r.Claim.ID] {
			// After a repeat, this worker's own first try may have settled it.
			if !r.end.MaybeSettled && mode == waitForLocks {
				s.events().leaseLost(r.Claim, r.LostOutcome(), "before it was settled")
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
				wait += r.ruleOf(at).DelayAfter(at.Attempts)
			}
			s.Pollers.Hint(r.Queue, at, wait)
			next = wait
		}
		s.Observer.Ended(r, OutcomeOf(&r.end, r.Failure), next)
	}
	if len(freed) > 0 {
		s.Pollers.Freed(freed)
	}
}

// tellFlows tells of the members and waiters of flows among runs that have ended, by the settler
// or by their handlers.
func (s *Settler) tellFlows(batch []*Run, lost map[int64]bool) {
	var members, gone []int64
	for _, r := range batch {
		e := &r.end
		if !e.Member && !e.Waiter {
			continue
		}
		finished := e.State == statements.StateDone || e.State == statements.StateDead || e.State == statements.StateCancelled
		maybeSettled := e.MaybeSettled || r.unsure && finished // by the handler, or by the worker itself
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

// report reports a failure that is settled.
func (s *Settler) report(r *Run) {
	switch f := r.Failure; {
	case r.end.State == statements.StateDead && f == nil && r.Claim.Exhausted && !r.Claim.Previous.Valid:
		s.deaths.add(exhausted{r.Queue, r.Claim.From.Kind, r.limit(), r.maxAttempts()})
	case r.end.State == statements.StateDead:
		stack := ""
		if f != nil {
			stack = f.Stack.V
		}
		s.events().died(r, r.whyDead(f), r.end.Error.V, stack)
	case r.end.Error.Valid:
		s.events().attemptFailed(r, f)
	}
}
