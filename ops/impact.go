package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Effect counts the changes that an override of policies makes to the tasks of its subject that wait now.
type Effect struct {
	Subject falldue.Subject
	// Diff counts the tasks that follow the override and whose policies are known. Its Kind is the subject's. Own is how
	// many tasks have a per-task policy, which they keep. For an override with steps, AtOnce and Exhausted are counted in
	// the step with the most such tasks, and Sooner and Later in the first step. After includes all steps, and the end of
	// the override.
	Diff
	// Unknown is the number of failed tasks that follow the override and whose policy is not known: any of these tasks may
	// become due immediately. UnknownExhausted is how many of these tasks would have no attempt left.
	Unknown, UnknownExhausted int64
	// Kept is the number of tasks of the subject that still follow a more specific override.
	Kept int64
	// Replaces is the override of the same subject that is set now, or nil.
	Replaces *Override
	// AtEnd is the number of tasks that become due when the override ends at its Until, since the code's policy would have
	// made them due earlier.
	AtEnd int64
}

// Drastic reports whether more tasks than a given number would become due immediately, or would become dead.
// It also counts tasks whose policy is unknown.
func (e Effect) Drastic(most int64) bool {
	return e.AtOnce+e.Unknown > most || e.Exhausted+e.UnknownExhausted > most
}

// Impact returns the effect of an override on the waiting tasks, compared with the policies and
// overrides that are in effect now. The loads cover a horizon, as for [Profile.Forecast]. A more
// specific override stays in effect for its tasks. For a subject with a key, use the profile of
// that key. Impact returns an error if the horizon is invalid, or if the override cannot be
// compiled with the known policies.
func (p *Profile) Impact(o Override, horizon time.Duration) (Effect, error) {
	horizon, err := validHorizon(horizon)
	if err == nil {
		err = p.covers(o.Subject)
	}
	if err != nil {
		return Effect{}, err
	}
	o.At = p.At
	first := o
	first.Steps = nil
	e, c, next, nextFirst := Effect{Subject: o.Subject, Replaces: p.replaced(o.Subject)}, p.compare(o.Kind), p.policies.with(o), p.policies.with(first)
	later := p.laterSteps(o)
	for g, t := range p.all {
		if holds, ok := next.Override(t); !ok || holds.Subject != o.Subject {
			all := o
			if all.IncludeOwn = true; !ok && all.Names(t) {
				c.Own += g.Tasks
			} else if o.Names(t) {
				e.Kept += g.Tasks
			}
			continue
		}
		from, known := p.policies.Of(t)
		if !known {
			if g.Delayed() {
				e.Unknown += g.Tasks
				if limit := later.limit; limit > 0 && g.Attempts >= limit {
					e.UnknownExhausted += g.Tasks
				}
			} else {
				c.add(g, change{was: always(0), is: always(0), after: always(0)})
			}
			continue
		}
		code, _ := p.policies.Code(t)
		policies, err := later.policies(code)
		if err != nil {
			return Effect{}, err
		}
		later.add(g, from, policies)
		e.AtEnd += later.wakesAtEnd(g, policies, code)
		c.add(g, change{from, policies[0], p.waits(g, p.policies), p.waits(g, nextFirst), p.waits(g, next)})
	}
	e.Diff = c.diff(horizon)
	e.AtOnce, e.Exhausted = max(e.AtOnce, slices.Max(later.atOnce)), max(e.Exhausted, slices.Max(later.exhausted))
	return e, nil
}

// ClearImpact returns the effect that clearing a subject's override would have on the waiting tasks, as
// [Profile.Impact] does for a new override. After the clearing, less specific overrides apply to the subject's tasks.
// Nothing changes if the subject has no override.
func (p *Profile) ClearImpact(s falldue.Subject, horizon time.Duration) (Effect, error) {
	horizon, err := validHorizon(horizon)
	if err == nil {
		err = p.covers(s)
	}
	if err != nil {
		return Effect{}, err
	}
	e, c, next := Effect{Subject: s, Replaces: p.replaced(s)}, p.compare(s.Kind), p.policies.without(s)
	for g, t := range p.all {
		if holds, ok := p.policies.Override(t); !ok || holds.String() != s.String() {
			continue
		}
		from, known := p.policies.Of(t)
		if !known && g.Delayed() {
			e.Unknown += g.Tasks
			continue
		}
		to, _ := next.Of(t)
		is := p.waits(g, next)
		c.add(g, change{from, to, p.waits(g, p.policies), is, is})
	}
	e.Diff = c.diff(horizon)
	return e, nil
}

// replaced returns the override of a subject that is set now, or nil.
func (p *Profile) replaced(s falldue.Subject) *Override {
	for _, o := range p.policies.overrides {
		if o.String() == s.String() {
			return &o
		}
	}
	return nil
}

// covers returns an error if the profile does not have the tasks of a subject.
func (p *Profile) covers(s falldue.Subject) error {
	if s.Key != "" && p.key == "" {
		return errors.New("ops: the subject has a key, but the profile covers all keys: read the profile with ProfileKey")
	}
	return nil
}

// stepsOf are the steps of an override, and the effect of the steps after the first one.
type stepsOf struct {
	steps []OverrideStep
	from  []int64 // microseconds since 1970, when each step begins
	until int64   // when the last one ends
	limit int     // the lowest limit on attempts that one of them sets, or 0

	atOnce, exhausted []int64 // by step, 0 for the first
}

func (p *Profile) laterSteps(o Override) *stepsOf {
	s := &stepsOf{steps: o.Steps, until: math.MaxInt64}
	if len(s.steps) == 0 {
		s.steps = []OverrideStep{{Formula: o.Formula}}
	}
	if !o.Until.IsZero() {
		s.until = o.Until.UnixMicro()
	}
	for _, step := range s.steps {
		s.from = append(s.from, p.At.Add(step.After).UnixMicro())
		if limit := newLimit(step.Formula); limit > 0 && (s.limit == 0 || limit < s.limit) {
			s.limit = limit
		}
	}
	s.from[0] = math.MinInt64
	s.atOnce, s.exhausted = make([]int64, len(s.steps)), make([]int64, len(s.steps))
	return s
}

// policies returns the policy that each step makes of a policy.
func (s *stepsOf) policies(code backoff.Policy) (list []backoff.Policy, err error) {
	for _, step := range s.steps {
		policy := step.Formula.Of(code)
		if err := policy.Err(); err != nil {
			return nil, fmt.Errorf("ops: the override of %s: %w", code, err)
		}
		list = append(list, policy)
	}
	return list, nil
}

// add adds the effect of the steps after the first one on a group of tasks.
func (s *stepsOf) add(g *store.Profiled, from backoff.Policy, policies []backoff.Policy) {
	for i := 1; i < len(policies) && s.from[i] < s.until; i++ {
		s.atOnce[i] += max(0, dueBy(g, delayOf(g, policies[i]), s.from[i])-dueBy(g, delayOf(g, policies[i-1]), s.from[i]))
		if exhausted(g, policies[i]) && !exhausted(g, from) {
			s.exhausted[i] += g.Tasks
		}
	}
}

// wakesAtEnd returns how many tasks of a group become due because the last step ends.
func (s *stepsOf) wakesAtEnd(g *store.Profiled, policies []backoff.Policy, code backoff.Policy) int64 {
	if s.until == math.MaxInt64 {
		return 0
	}
	last := policies[0]
	for i := 1; i < len(policies) && s.from[i] < s.until; i++ {
		last = policies[i]
	}
	return max(0, dueBy(g, delayOf(g, code), s.until)-dueBy(g, delayOf(g, last), s.until))
}

// newLimit returns the limit on attempts that an override sets, or 0 if it sets none.
func newLimit(o backoff.Override) int {
	one, other := o.Of(backoff.Policy{}.WithMaxAttempts(1)).MaxAttempts(), o.Of(backoff.Policy{}.WithMaxAttempts(2)).MaxAttempts()
	if one != other {
		return 0
	}
	return one
}

// The shortest and the longest duration of a release ([Profile.Release]).
const (
	MinRelease = 5 * time.Second
	MaxRelease = 7 * 24 * time.Hour
)

const (
	// maxReleaseSteps is the greatest number of steps of a release. One that is shorter than
	// shortRelease has shortSteps.
	maxReleaseSteps          = 60
	shortRelease, shortSteps = 10 * time.Minute, 40
	// appliedWithin is the time in which all workers apply an override.
	appliedWithin = 2 * time.Second
)

// Release returns the steps of an override that releases the waiting tasks of a subject gradually, for example after a
// hold or an outage. Without any override, many of these tasks would be due now. With the steps, they become due within
// the duration over, together with the tasks that would fall due in that time anyway. The longest overdue tasks come
// first, each step has the same number of tasks, and no task is due sooner than without any override. Pass the steps to
// [Ops.SetPolicy], with an Until after the release.
//
// A step lasts a minute, or a 60th of over if that is longer. If over is less than ten minutes, no task becomes due in
// the first two seconds, while workers apply the override, and the rest of the time has 40 steps.
//
// A task that fails during the release also waits longer than under its policy. The extra wait ends with the release.
// It is at most the length of the release plus the time for which the longest overdue task has been due.
//
// Release returns an error unless over is from [MinRelease] to [MaxRelease], 5 seconds to 7 days. It returns an
// [UnknownPolicyError] if the policy of a task is unknown.
func (p *Profile) Release(s falldue.Subject, includeOwn bool, over time.Duration) ([]OverrideStep, error) {
	if over < MinRelease || over > MaxRelease {
		return nil, fmt.Errorf("ops: the duration %v: must be %v to %v", over, MinRelease, MaxRelease)
	}
	if err := p.covers(s); err != nil {
		return nil, err
	}
	late, names := lateTasks{now: p.At.UnixMicro(), over: over, unit: time.Second}, Override{Subject: s, IncludeOwn: includeOwn}
	for g, t := range p.all {
		if !g.Delayed() || !names.Names(t) {
			continue
		}
		policy, known := p.policies.Code(t)
		if !known {
			return nil, UnknownPolicyError{g.Kind}
		}
		late.groups, late.delays = append(late.groups, g), append(late.delays, delayOf(g, policy))
	}
	begin, width := time.Duration(0), max(time.Minute, (over+maxReleaseSteps-1)/maxReleaseSteps)
	if over < shortRelease {
		late.unit, begin = time.Millisecond, appliedWithin
		width = (over - begin + shortSteps - 1) / shortSteps
	}
	var steps []OverrideStep
	// add adds a step. At its end n tasks are due: those that are longest overdue, or fall due first.
	add := func(after, end time.Duration, n int64) error {
		extra := min(max((late.atMost(n)+end+late.unit-1)/late.unit*late.unit, 0), maxDelay)
		text := "original"
		if extra > 0 {
			text += " + " + strconv.FormatFloat(extra.Seconds(), 'f', -1, 64) + "s"
		}
		override, err := backoff.ParseOverride(text)
		steps = append(steps, OverrideStep{After: after, Formula: override})
		return err
	}
	if begin > 0 {
		if err := add(0, begin, 0); err != nil {
			return nil, err
		}
	}
	total, count := late.than(-over), int64((over-begin+width-1)/width)
	for k := range count {
		after := begin + time.Duration(k)*width
		if err := add(after, after+width, total*(k+1)/count); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// lateTasks are tasks that wait, with their delays.
type lateTasks struct {
	now    int64         // microseconds since 1970
	over   time.Duration // the least lateness that counts, negated
	unit   time.Duration // of the times that atMost returns
	groups []*store.Profiled
	delays []time.Duration
}

// than returns how many tasks have been due for a time or longer. If d is negative, it includes those that fall due
// within -d.
func (l lateTasks) than(d time.Duration) (n int64) {
	for i, g := range l.groups {
		n += dueBy(g, l.delays[i]+d, l.now)
	}
	return n
}

// atMost returns the shortest time, in the unit, for which at most n tasks have been due. It is -over or longer.
func (l lateTasks) atMost(n int64) time.Duration {
	least, most := -int64(l.over/l.unit), int64(maxDelay/l.unit)
	for least < most {
		if middle := least + (most-least)/2; l.than(time.Duration(middle)*l.unit) <= n {
			most = middle
		} else {
			least = middle + 1
		}
	}
	return time.Duration(least) * l.unit
}

// Overrides returns the steps of a ramp as an override with steps, for
// [Ops.SetPolicy]. The first step begins immediately.
func Overrides(ramp []Step) (steps []OverrideStep, err error) {
	if len(ramp) > 0 && ramp[0].After != 0 {
		return nil, fmt.Errorf("ops: a ramp that begins after %v: the first step must be at 0s, since it replaces the current override", ramp[0].After)
	}
	for _, step := range ramp {
		o, err := backoff.OverrideWith(step.Policy)
		if err != nil {
			return nil, err
		}
		steps = append(steps, OverrideStep{After: step.After, Formula: o})
	}
	return steps, nil
}
