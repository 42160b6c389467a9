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
	return p.spansOver(t, code, now), true
}

// spansOver is spans for a task that has a given policy without overrides.
func (p Policies) spansOver(t falldue.TaskInfo, code backoff.Policy, now time.Time) (list []span) {
	from := time.Time{}
	for _, o := range p.overrides {
		if !o.Names(t) || !o.Until.IsZero() && !o.Until.After(latest(now, from)) {
			continue
		}
		steps := o.Steps
		if len(steps) == 0 { // one that is not set
			steps = []OverrideStep{{Formula: o.Formula}}
		}
		for i, step := range steps {
			to := o.Until
			if i+1 < len(steps) {
				if next := o.At.Add(steps[i+1].After); to.IsZero() || next.Before(to) {
					to = next
				}
			}
			if !to.IsZero() && !to.After(latest(now, from)) {
				continue
			}
			policy := step.Formula.Of(code)
			if policy.Err() != nil { // workers keep the old one
				policy = code
			}
			list = append(list, span{from, to, policy})
			if from = to; to.IsZero() {
				return list
			}
		}
	}
	return append(list, span{from: from, policy: code})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dueUnder returns when a task is due that has failed n times and waits from anchor on.
func dueUnder(list []span, anchor time.Time, n int) time.Time {
	due, _ := dueSpan(list, anchor, n)
	return due
}

// dueSpan is dueUnder. It returns the span, too, in which that is.
func dueSpan(list []span, anchor time.Time, n int) (due time.Time, in span) {
	for _, in = range list {
		delay, _ := in.policy.Wait(int64(n))
		if due = anchor.Add(delay); in.to.IsZero() || due.Before(in.to) {
			break
		}
	}
	return latest(due, in.from), in
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
