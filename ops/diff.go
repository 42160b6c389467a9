package ops

import (
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Diff is what another policy for a kind would change for its tasks that wait now.
type Diff struct {
	Kind string
	// Tasks is the number of tasks of the kind that wait and follow its policy. Own is how
	// many more have a policy of their own, which they keep; nothing else counts these.
	Tasks, Own int64
	// AtOnce is how many wait under the old policy and would be due at once under the new
	// one. Sooner and Later are how many others would be due earlier or later.
	AtOnce, Sooner, Later int64
	// Exhausted is how many have no attempt left under the new policy and one under the old
	// one: workers make them dead when they fall due. A task's own limit of attempts, which
	// comes first, is not known here, nor is the limit of elapsed time.
	Exhausted int64
	// Before and After are the loads under the two policies.
	Before, After Load
	// Herd reports whether the busiest minute has 100 tasks more and twice as many as under
	// the old policy.
	Herd bool
}

const (
	defaultHorizon = 24 * time.Hour
	maxHorizon     = 365 * 24 * time.Hour
)

// validHorizon returns a horizon, or the default for 0.
func validHorizon(horizon time.Duration) (time.Duration, error) {
	switch {
	case horizon == 0:
		return defaultHorizon, nil
	case horizon < time.Minute || horizon > maxHorizon:
		return 0, fmt.Errorf("ops: a horizon of %v; allowed are %v to %v", horizon, time.Minute, maxHorizon)
	}
	return horizon, nil
}

// Diff compares two policies of a kind on the tasks that wait now, with loads up to a
// horizon as for [Profile.Forecast]. The error is that of an invalid policy or horizon.
func (p *Profile) Diff(kind string, from, to backoff.Policy, horizon time.Duration) (Diff, error) {
	horizon, err := p.validate(horizon, from, to)
	if err != nil {
		return Diff{}, err
	}
	c := p.compare(kind)
	for i := range p.groups {
		g := &p.groups[i]
		switch {
		case g.Kind != kind:
			continue
		case g.Policy != "":
			c.Own += g.Tasks
			continue
		}
		c.add(g, from, to, always(delayOf(g, to)))
	}
	return c.diff(horizon), nil
}

// comparison adds up a Diff.
type comparison struct {
	Diff
	now           int64 // microseconds since 1970
	before, after *loadBuilder
}

func (p *Profile) compare(kind string) *comparison {
	return &comparison{Diff: Diff{Kind: kind}, now: p.At.UnixMicro(), before: p.newLoad(), after: p.newLoad()}
}

// add adds a group of tasks that has one policy and would have another, with its waits then.
func (c *comparison) add(g *store.Profiled, from, to backoff.Policy, after []wait) {
	was, is := delayOf(g, from), delayOf(g, to)
	c.Tasks += g.Tasks
	c.before.add(g, always(was))
	c.after.add(g, after)
	dueWas, dueIs := dueBy(g, was, c.now), dueBy(g, is, c.now)
	switch {
	case is < was:
		c.AtOnce += dueIs - dueWas
		c.Sooner += g.Tasks - dueIs
	case is > was:
		c.Later += g.Tasks - dueIs
	}
	if exhausted(g, to) && !exhausted(g, from) {
		c.Exhausted += g.Tasks
	}
}

func (c *comparison) diff(horizon time.Duration) Diff {
	c.Before, c.After = c.before.load(horizon), c.after.load(horizon)
	c.Herd = isHerd(c.Before.Peak, c.After.Peak)
	return c.Diff
}

func isHerd(before, after int64) bool { return after > 2*before && after-before >= 100 }

func exhausted(g *store.Profiled, p backoff.Policy) bool {
	return p.MaxAttempts() > 0 && g.Attempts >= p.MaxAttempts()
}

func (p *Profile) validate(horizon time.Duration, policies ...backoff.Policy) (time.Duration, error) {
	for _, policy := range policies {
		if err := policy.Err(); err != nil {
			return 0, err
		}
	}
	return validHorizon(horizon)
}
