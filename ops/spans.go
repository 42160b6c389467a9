package ops

import (
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// span is a time in which a policy holds for a task. The first of several spans has no
// beginning, and the last one no end: those times are zero.
type span struct {
	from, to time.Time
	policy   backoff.Policy
}

// spans returns the policies that hold for a task from now on, as the overrides that are set
// now take their steps and end. It reports whether they are known.
func (p Policies) spans(t falldue.TaskInfo, now time.Time) (list []span, known bool) {
	code, known := p.Code(t)
	if !known {
		return nil, false
	}
	from := time.Time{}
	for _, o := range p.overrides {
		if !o.Names(t) || !o.Until.IsZero() && !o.Until.After(latest(now, from)) {
			continue
		}
		steps := o.Steps
		if len(steps) == 0 { // one that is not set
			steps = []falldue.OverrideStep{{Override: o.Override}}
		}
		for i, step := range steps {
			to := o.Until
			if i+1 < len(steps) {
				to = o.At.Add(steps[i+1].After)
			}
			if !to.IsZero() && !to.After(latest(now, from)) {
				continue
			}
			policy := step.Override.Of(code)
			if policy.Err() != nil { // workers keep the old one
				policy = code
			}
			list = append(list, span{from, to, policy})
			if from = to; to.IsZero() {
				return list, true
			}
		}
	}
	return append(list, span{from: from, policy: code}), true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dueUnder returns when a task is due that has failed n times and waits from anchor on.
func dueUnder(list []span, anchor time.Time, n int) time.Time {
	for _, s := range list {
		delay, _ := s.policy.Wait(int64(n))
		due := anchor.Add(delay)
		if s.to.IsZero() || due.Before(s.to) {
			return latest(due, s.from)
		}
	}
	return time.Time{} // not reached: the last span has no end
}

// policyAt returns the policy that holds at a time.
func policyAt(list []span, at time.Time) (p backoff.Policy) {
	for _, s := range list {
		if p = s.policy; s.to.IsZero() || at.Before(s.to) {
			break
		}
	}
	return p
}
