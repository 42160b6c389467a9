package ops

import (
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Diff is the effect of another policy for a kind on the tasks that wait now.
type Diff struct {
	Kind string
	// Tasks is the number of waiting tasks that follow the policy of the kind. Own is the number of tasks with a per-task
	// policy. Such tasks keep their policy, and no other field counts them.
	Tasks, Own int64
	// AtOnce is the number of tasks that wait under the current policy, and would be due immediately under the new one.
	// Sooner and Later are how many other tasks would be due earlier or later.
	AtOnce, Sooner, Later int64
	// Exhausted is the number of tasks that have an attempt left under the current policy, and none under the new one:
	// such tasks become dead when they fall due. Limits on elapsed time, and the MaxAttempts of single tasks, are not
	// considered.
	Exhausted int64
	// Before and After are the loads under the current and the new policy.
	Before, After Load
	// Herd reports whether the busiest minute under the new policy has more than twice as many tasks as the busiest minute
	// under the current policy, and at least 100 more.
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
		return 0, fmt.Errorf("ops: a horizon of %v: must be %v to %v", horizon, time.Minute, maxHorizon)
	}
	return horizon, nil
}

// Diff compares another policy for a kind with the policies that are in effect for its waiting tasks, including
// overrides with their steps and their end. Diff is like [Profile.Impact] for an override of the kind that replaces the
// whole policy.
func (p *Profile) Diff(kind string, to backoff.Policy, horizon time.Duration) (Effect, error) {
	override, err := backoff.OverrideWith(to)
	if err != nil {
		return Effect{}, err
	}
	return p.Impact(Override{Subject: falldue.Subject{Kind: kind}, Formula: override}, horizon)
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

// change is what a change of policies does to a group of tasks: the policies before and
// after it, and the waits under them. Of a change with later steps is has those without
// them, and after has all.
type change struct {
	from, to       backoff.Policy
	was, is, after []wait
}

// add adds a group of tasks.
func (c *comparison) add(g *store.Profiled, by change) {
	c.Tasks += g.Tasks
	c.before.add(g, by.was)
	c.after.add(g, by.after)
	dueWas, dueIs := dueOf(g, by.was, c.now), dueOf(g, by.is, c.now)
	switch was, is := firstDue(g.First, by.was), firstDue(g.First, by.is); {
	case is < was:
		c.AtOnce += max(0, dueIs-dueWas)
		c.Sooner += g.Tasks - dueIs
	case is > was:
		c.Later += g.Tasks - dueIs
	}
	if exhausted(g, by.to) && !exhausted(g, by.from) {
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
