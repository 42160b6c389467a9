package ops

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Step is a step from one policy to another: from After on, Policy holds.
type Step struct {
	// After is when the step is taken, from the profile on.
	After time.Duration
	// Share is the share of the new policy in the delay, above 0 to 1.
	Share float64
	// Policy has a delay between those of the two policies, and all else of the new one. The
	// last step has the new policy itself.
	Policy backoff.Policy
	// Due is how many tasks fall due in the busiest minute of the step.
	Due int64
}

const (
	// shares is the number of parts into which the way from one policy to the other is cut.
	shares = 1000
	// maxRamp is the greatest number of minutes of a ramp, each of which may have a step.
	maxRamp = 3 * 24 * 60
)

// Ramp proposes steps from one policy of a kind to another, so that at most perMinute of
// the tasks that wait now fall due in a minute, as far as they do not under the old policy
// either. Tasks that are due already do not count. The error is that of an invalid policy or
// rate, or says that the ramp would take more than three days.
func (p *Profile) Ramp(kind string, from, to backoff.Policy, perMinute int64) ([]Step, error) {
	if _, err := p.validate(0, from, to); err != nil {
		return nil, err
	}
	if perMinute < 1 {
		return nil, fmt.Errorf("ops: a rate of %d tasks a minute; allowed are 1 and more", perMinute)
	}
	r := ramp{now: p.At.UnixMicro()}
	for i := range p.groups {
		if g := &p.groups[i]; g.Kind == kind && g.Policy == "" && waits(g) {
			was := delayOf(g, from)
			r.groups = append(r.groups, rampGroup{Profiled: g, from: was, to: delayOf(g, to), fired: dueBy(g, was, r.now)})
		}
	}
	var steps []Step
	share := 0
	for minute := range maxRamp {
		next, due := r.widest(share, minute, perMinute)
		r.fire(next, minute)
		if next > share {
			policy, err := mix(from, to, next)
			if err != nil {
				return nil, err
			}
			steps = append(steps, Step{After: time.Duration(minute) * time.Minute, Share: float64(next) / shares, Policy: policy})
			share = next
		}
		if n := len(steps); n > 0 {
			steps[n-1].Due = max(steps[n-1].Due, due)
		}
		if share == shares {
			return steps, nil
		}
	}
	return nil, fmt.Errorf("ops: at %d tasks a minute the ramp takes more than %d hours", perMinute, maxRamp/60)
}

// ramp is how far the tasks of a kind have come on the way from one policy to another.
type ramp struct {
	now    int64 // microseconds since 1970
	groups []rampGroup
}

type rampGroup struct {
	*store.Profiled
	from, to time.Duration // delays
	fired    int64         // how many have fallen due
}

// firedBy returns how many tasks of a group have fallen due at the end of a minute, if the
// delay has a share of the new policy.
func (r *ramp) firedBy(g *rampGroup, share, minute int) int64 {
	delay := g.from + time.Duration(float64(g.to-g.from)*float64(share)/shares)
	return max(g.fired, dueBy(g.Profiled, delay, r.now+int64(minute+1)*minuteMicros))
}

// due returns how many tasks fall due in a minute under a share. It stops counting above
// most.
func (r *ramp) due(share, minute int, most int64) (n int64) {
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
func (r *ramp) widest(least, minute int, most int64) (share int, due int64) {
	if due = r.due(shares, minute, most); due <= most {
		return shares, due
	}
	above := shares // a share that is too great
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
func (r *ramp) fire(share, minute int) {
	for i := range r.groups {
		r.groups[i].fired = r.firedBy(&r.groups[i], share, minute)
	}
}

// mix returns the policy of a step.
func mix(from, to backoff.Policy, share int) (backoff.Policy, error) {
	if share == shares {
		return to, nil
	}
	number := func(share int) string { return strconv.FormatFloat(float64(share)/shares, 'g', -1, 64) }
	text := "delay " + number(shares-share) + " * (" + from.Delay().String() + ") + " + number(share) + " * (" + to.Delay().String() + ")"
	policy, err := backoff.Parse(text)
	if err != nil {
		return policy, fmt.Errorf("ops: a policy between the two: %w", err)
	}
	if jitter := to.Jitter(); !jitter.IsZero() {
		policy = policy.WithJitter(jitter.String())
	}
	policy = policy.WithMaxAttempts(to.MaxAttempts()).WithMaxElapsed(to.MaxElapsed())
	return policy, policy.Err()
}
