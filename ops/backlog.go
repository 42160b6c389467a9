package ops

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Backlog contains the tasks that wait at one moment, for [Scenario].
type Backlog struct {
	// Kind is the kind of all tasks in the backlog, or "" for tasks of any kind.
	Kind string
	// Tasks is the number of tasks that wait or run.
	Tasks  int64
	groups []backlogGroup
	rules  []course // of new tasks, and how many tasks have them
	shares []int64
}

// backlogGroup is a group of tasks with their policies.
type backlogGroup struct {
	attempts    int
	tasks       int64
	first, last time.Duration // anchors, after the profile
	waits       bool          // whether a policy's delay holds for them
	rule        course
}

// course is the sequence of policies that apply to a task.
type course []courseSpan

type courseSpan struct {
	from, to time.Duration // after the beginning of a simulation
	policy   backoff.Policy
}

// only returns the course of a policy that never changes.
func only(p backoff.Policy) course { return course{{math.MinInt64, math.MaxInt64, p}} }

// at returns the policy that holds at a time.
func (c course) at(at time.Duration) backoff.Policy {
	for _, s := range c {
		if at < s.to {
			return s.policy
		}
	}
	return c[len(c)-1].policy
}

// due returns when a task is due that has failed n times and waits from anchor on.
func (c course) due(anchor time.Duration, n int) (due time.Duration) {
	for _, s := range c {
		delay, _ := s.policy.Wait(int64(n))
		if due = sum(anchor, delay); due < s.to {
			return max(due, s.from)
		}
	}
	return due
}

// UnknownPolicyError is the error of a computation for waiting tasks of a kind whose policy is unknown: no live worker
// handles the kind. Set the policy with [Ops.WithPolicies].
type UnknownPolicyError struct{ Kind string }

func (e UnknownPolicyError) Error() string {
	return fmt.Sprintf("ops: the policy of kind %s is unknown, and the kind has waiting tasks: set the policy with Ops.WithPolicies, or start a worker that handles the kind", e.Kind)
}

// mostBacklog is the greatest number of tasks of a backlog.
const mostBacklog = 5_000_000

// Backlog returns the waiting tasks of a kind, or of all kinds if it is "", with the policies in
// effect, for [Simulate] and [SimulateBacklog]. A running task counts as waiting from the end of
// its lease on. Backlog returns an [UnknownPolicyError] if the policy of a task is unknown, and
// another error if there are more than 5,000,000 tasks.
func (p *Profile) Backlog(kind string) (*Backlog, error) {
	b := &Backlog{Kind: kind}
	after := func(at time.Time, zero time.Duration) time.Duration {
		if at.IsZero() {
			return zero
		}
		return at.Sub(p.At)
	}
	courseOf := func(t falldue.TaskInfo) (c course, err error) {
		list, known := p.policies.spans(t, p.At)
		for _, s := range list {
			c = append(c, courseSpan{after(s.from, math.MinInt64), after(s.to, math.MaxInt64), s.policy})
		}
		if !known {
			err = UnknownPolicyError{t.Kind}
		}
		return c, err
	}
	for g, t := range p.all {
		if kind != "" && g.Kind != kind {
			continue
		}
		rule, err := courseOf(t)
		if err != nil {
			return nil, err
		}
		b.Tasks += g.Tasks
		b.groups = append(b.groups, backlogGroup{
			attempts: g.Attempts, tasks: g.Tasks, waits: g.Delayed(), rule: rule,
			first: store.Time(g.First).Sub(p.At), last: store.Time(g.Last).Sub(p.At),
		})
		b.rules, b.shares = append(b.rules, rule), append(b.shares, b.Tasks)
	}
	if kind != "" && len(b.rules) == 0 {
		rule, err := courseOf(falldue.TaskInfo{Kind: kind})
		if err != nil {
			return nil, err
		}
		b.rules, b.shares = append(b.rules, rule), append(b.shares, 1)
	}
	if b.Tasks > mostBacklog {
		return nil, fmt.Errorf("ops: a backlog of %d tasks: must be at most %d", b.Tasks, mostBacklog)
	}
	return b, nil
}

// SimulateBacklog is like [Simulate], with the policies of the backlog's tasks, including the steps and the ends of
// overrides. New tasks have the same policies, in the same proportions as in the backlog.
func SimulateBacklog(ctx context.Context, s Scenario) (Recovery, error) {
	if s.Backlog == nil || len(s.Backlog.rules) == 0 {
		return Recovery{}, fmt.Errorf("ops: no task waits, so no policy is known: pass a policy to Simulate")
	}
	return run(ctx, nil, s, maxSimulated)
}

// newTask returns the policies of a new task.
func (b *Backlog) newTask(random func(int64) int64) course {
	if len(b.rules) == 1 {
		return b.rules[0]
	}
	n := random(b.shares[len(b.shares)-1])
	return b.rules[sort.Search(len(b.shares), func(i int) bool { return b.shares[i] > n })]
}

// load makes the tasks of the backlog wait.
func (m *simulation) load(b *Backlog) {
	m.retries = make(retryHeap, 0, b.Tasks)
	for _, g := range b.groups {
		rule := g.rule
		if m.rule != nil {
			rule = m.rule
		}
		for i := range g.tasks {
			t := waitingTask{due: g.first, failures: g.attempts, rule: rule, old: true}
			if g.tasks > 1 {
				t.due += time.Duration(float64(g.last-g.first) * float64(i) / float64(g.tasks-1))
			}
			if t.first = t.due; g.waits {
				t.due = rule.due(t.due, g.attempts)
			}
			if limit := rule.at(max(t.due, 0)).MaxAttempts(); limit > 0 && t.failures >= limit {
				m.result.Dead++
			} else if !m.tooLate(t) {
				m.retries = append(m.retries, t)
			}
		}
	}
	heap.Init(&m.retries)
}

// tooLate reports whether a task falls due so late that it is left out, and counts it.
func (m *simulation) tooLate(t waitingTask) bool {
	late := m.Backlog != nil && t.due > m.Outage+lateAfter
	if late {
		m.result.Later++
	}
	return late
}
