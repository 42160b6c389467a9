package ops

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Step is a step from one policy to another: from After on, Policy is in effect.
type Step struct {
	// After is when the step begins, from the time of the profile.
	After time.Duration
	// Share is the share of the new policy in the delay, 0 to 1.
	Share float64
	// Policy has a delay between the delays of the two policies. Everything else is from the new policy. The policy of
	// the last step is the new policy itself.
	Policy backoff.Policy
	// Due is how many tasks fall due in the busiest minute of the step. If Due is more than the ramp allows, the
	// policy that is already in effect also makes that many tasks due in that minute.
	Due int64
}

const (
	// minShares is the least number of parts into which the way from one policy to the other
	// is cut, and perShare the time that a part of the way between distant delays has.
	minShares = 1000
	perShare  = 10 * time.Second
	// maxRamp is the greatest number of minutes of a ramp; each may have a step.
	maxRamp = 3 * 24 * 60
)

// Ramp proposes steps from the current policy of a kind, such as an override that holds retries back, to another
// policy. With these steps, at most perMinute of the tasks that wait now fall due in each minute, unless more would
// fall due even without the steps. Tasks that are due already do not count, nor do tasks with a more specific override.
// The first step is at 0, and replaces the current override of the kind.
//
// If different policies are in effect in several queues, the steps begin with the policy of the largest number of
// tasks.
//
// Ramp returns an error if the policy or the rate is invalid, if the policy of the kind is not
// known, or if the ramp would take more than three days.
func (p *Profile) Ramp(kind string, to backoff.Policy, perMinute int64) ([]Step, error) {
	if err := to.Err(); err != nil {
		return nil, err
	}
	if perMinute < 1 {
		return nil, fmt.Errorf("ops: a rate of %d tasks a minute: must be 1 or more", perMinute)
	}
	r, from, err := p.newRamp(kind, to)
	if err != nil {
		return nil, err
	}
	var steps []Step
	share, natural := int64(0), int64(0)
	for minute := range maxRamp {
		next, due := r.widest(share, minute, perMinute)
		if due > perMinute {
			natural = max(natural, due)
		}
		r.fire(next, minute)
		if next > share || minute == 0 {
			policy, err := r.mix(from, to, next)
			if err != nil {
				return nil, err
			}
			steps = append(steps, Step{After: time.Duration(minute) * time.Minute, Share: float64(next) / float64(r.shares), Policy: policy})
			share = next
		}
		last := &steps[len(steps)-1]
		last.Due = max(last.Due, due)
		if share == r.shares {
			return steps, nil
		}
	}
	if natural > 0 {
		return nil, fmt.Errorf("ops: at %d tasks a minute the ramp does not end within %d hours: up to %d tasks fall due in a minute even without a ramp; allow more than that", perMinute, maxRamp/60, natural)
	}
	return nil, fmt.Errorf("ops: at %d tasks a minute the ramp takes more than %d hours; allow more than that", perMinute, maxRamp/60)
}

// ramp is how far the tasks of a kind have come on the way from one policy to another.
type ramp struct {
	now    int64 // microseconds since 1970
	shares int64 // the parts of the way
	groups []rampGroup
}

type rampGroup struct {
	*store.Profiled
	from, to time.Duration // delays
	fired    int64         // how many have fallen due
}

// newRamp returns the ramp of a kind at its beginning, and the policy from which it starts.
func (p *Profile) newRamp(kind string, to backoff.Policy) (*ramp, backoff.Policy, error) {
	r := &ramp{now: p.At.UnixMicro(), shares: minShares}
	kinds := falldue.Subject{Kind: kind}
	next := p.policies.with(Override{Subject: kinds})
	from, known := p.policies.Of(falldue.TaskInfo{Kind: kind})
	tasks, most := map[string]int64{}, int64(0)
	for g, t := range p.all {
		if holds, ok := next.Override(t); !ok || holds.Subject != kinds || !g.Delayed() {
			continue
		}
		r.groups = append(r.groups, rampGroup{Profiled: g, to: delayOf(g, to), fired: dueOf(g, p.waits(g, p.policies), r.now)})
		holds, _ := p.policies.Of(t)
		if tasks[holds.String()] += g.Tasks; tasks[holds.String()] > most {
			from, most = holds, tasks[holds.String()]
		}
	}
	if !known {
		return nil, from, fmt.Errorf("ops: the policy of kind %s is not known, since no live worker handles the kind: set it with Ops.WithPolicies", kind)
	}
	for i := range r.groups {
		g := &r.groups[i]
		g.from = delayOf(g.Profiled, from)
		r.shares = max(r.shares, int64((g.from-g.to).Abs()/perShare))
	}
	return r, from, nil
}

// firedBy returns how many tasks of a group have fallen due at the end of a minute, if the
// delay has a share of the new policy.
func (r *ramp) firedBy(g *rampGroup, share int64, minute int) int64 {
	delay := g.from + time.Duration(float64(g.to-g.from)*float64(share)/float64(r.shares))
	return max(g.fired, dueBy(g.Profiled, delay, r.now+int64(minute+1)*minuteMicros))
}

// due returns how many tasks fall due in a minute under a share. It stops counting above
// most.
func (r *ramp) due(share int64, minute int, most int64) (n int64) {
	for i := range r.groups {
		if g := &r.groups[i]; g.fired < g.Tasks {
			n += r.firedBy(g, share, minute) - g.fired
		}
		if n > most {
			break
		}
	}
	return n
}

// widest returns the greatest share, from least on, under which no more than most tasks
// fall due in a minute, or least if there is none. It also returns how many do. It takes a
// greater share for one under which more fall due; where delays become longer that need not
// be, and the share may be smaller than it could be.
func (r *ramp) widest(least int64, minute int, most int64) (share, due int64) {
	if due = r.due(r.shares, minute, most); due <= most {
		return r.shares, due
	}
	above := r.shares // a share that is too great
	for share = least; above-share > 1; {
		if middle := (share + above) / 2; r.due(middle, minute, most) <= most {
			share = middle
		} else {
			above = middle
		}
	}
	return share, r.due(share, minute, math.MaxInt64)
}

// fire records which tasks have fallen due at the end of a minute.
func (r *ramp) fire(share int64, minute int) {
	for i := range r.groups {
		r.groups[i].fired = r.firedBy(&r.groups[i], share, minute)
	}
}

// mix returns the policy of a step.
func (r *ramp) mix(from, to backoff.Policy, share int64) (backoff.Policy, error) {
	if share == r.shares {
		return to, nil
	}
	number := func(share int64) string {
		return strconv.FormatFloat(float64(share)/float64(r.shares), 'g', 10, 64)
	}
	text := "delay " + from.Delay().String()
	if share > 0 {
		text = "delay " + number(r.shares-share) + " * (" + from.Delay().String() + ") + " + number(share) + " * (" + to.Delay().String() + ")"
	}
	policy, err := backoff.Parse(text)
	if err != nil {
		return policy, fmt.Errorf("ops: a policy between the current and the new one: %w", err)
	}
	if jitter := to.Jitter(); !jitter.IsZero() {
		policy = policy.WithJitter(jitter.String())
	}
	policy = policy.WithMaxAttempts(to.MaxAttempts()).WithMaxElapsed(to.MaxElapsed()).WithStartWithin(to.StartWithin())
	return policy, policy.Err()
}
