package ops

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/backoff"
)

// Scenario describes a system for [Simulate]: tasks arrive steadily, and all attempts fail during an outage.
type Scenario struct {
	// Outage is the length of the outage, up to 30 days. The outage starts when the simulation starts, and all attempts
	// that begin during it fail.
	Outage time.Duration
	// PerSecond is how many tasks are enqueued per second, evenly spread. It must be above 0.
	PerSecond float64
	// Handler is the duration of a successful attempt, and Failure is the duration of a failed attempt: up to 30 days
	// each. Failure defaults to Handler.
	Handler, Failure time.Duration
	// Workers is the number of handlers that can run concurrently, from 1 to 1,000,000.
	Workers int
	// Backlog describes the tasks that wait when the simulation starts, or is nil. [Profile.Backlog] returns one.
	Backlog *Backlog
	// Seed makes the jitter repeatable.
	Seed uint64
}

// Recovery describes how a system recovers from an outage.
type Recovery struct {
	// Failed is the number of tasks that failed, and Retries is the number of further attempts of these tasks. Dead is the
	// number of tasks that were given up.
	Failed, Retries, Dead int
	// Later is how many tasks the simulation leaves out, because they fall due more than a day after the outage. Without a
	// Backlog, Later is 0, and the simulation leaves out no tasks.
	Later int
	// LongestWait is the longest time that a task was due before a worker was free for it.
	LongestWait time.Duration
	// Recovered is the time from the end of the outage until all failed tasks and the backlog are done or dead, and no
	// task waits for a worker. Recovered is 0 if that happens before the end of the outage.
	Recovered time.Duration
	// Load is the number of attempts that began in each minute, and Peak is the largest of these numbers.
	Load []int
	Peak int
}

const (
	maxOutage = 30 * 24 * time.Hour
	// maxSimulated is the greatest number of attempts of a simulation.
	maxSimulated = 20_000_000
	// lateAfter is the time after an outage after which a simulation with a backlog ends.
	lateAfter = 24 * time.Hour
)

// Simulate returns how a system recovers from an outage under a policy that applies to all tasks, including the
// backlog. Workers take the tasks in the order in which they fall due. Leases, concurrency limits and rate limits are
// not simulated. For a task of the backlog, the time since the first attempt is unknown, so the policy's limit on
// elapsed time counts from the last failure. Simulate returns an error if ctx ends, the policy is invalid, or a number
// is out of range.
func Simulate(ctx context.Context, p backoff.Policy, s Scenario) (Recovery, error) {
	return simulate(ctx, p, s, maxSimulated)
}

func simulate(ctx context.Context, p backoff.Policy, s Scenario, most int) (Recovery, error) {
	if err := p.Err(); err != nil {
		return Recovery{}, err
	}
	return run(ctx, only(p), s, most)
}

// run simulates all tasks under a rule, or under the backlog's rules if it is nil.
func run(ctx context.Context, rule course, s Scenario, most int) (Recovery, error) {
	if err := s.validate(); err != nil {
		return Recovery{}, err
	}
	if s.Failure == 0 {
		s.Failure = s.Handler
	}
	m := simulation{Scenario: s, rule: rule, random: rand.New(rand.NewPCG(s.Seed, 0)), free: make(times, s.Workers)}
	if s.Backlog != nil {
		m.load(s.Backlog)
	}
	for attempts := 0; ; attempts++ {
		if err := ctx.Err(); err != nil {
			return Recovery{}, err
		}
		if attempts == most {
			return Recovery{}, fmt.Errorf("ops: the system has not recovered after %d attempts", most)
		}
		if m.step() {
			return m.result, nil
		}
	}
}

func (s Scenario) validate() error {
	switch {
	case s.Outage < 0 || s.Outage > maxOutage:
		return fmt.Errorf("ops: an outage of %v: must be 0 to %v", s.Outage, maxOutage)
	case !(s.PerSecond > 0 && s.PerSecond <= 1e6):
		return fmt.Errorf("ops: %v tasks a second: must be above 0 and at most 1,000,000", s.PerSecond)
	case s.Workers < 1 || s.Workers > 1_000_000:
		return fmt.Errorf("ops: %d workers: must be 1 to 1,000,000", s.Workers)
	case min(s.Handler, s.Failure) < 0 || max(s.Handler, s.Failure) > maxOutage:
		return fmt.Errorf("ops: handlers that succeed after %v and fail after %v: both must be 0 to %v", s.Handler, s.Failure, maxOutage)
	}
	if busy := s.PerSecond * s.Handler.Seconds(); busy >= float64(s.Workers) {
		return fmt.Errorf("ops: %v tasks per second that take %v each need more than %.4g workers: with %d, the backlog never ends", s.PerSecond, s.Handler, busy, s.Workers)
	}
	return nil
}

// simulation is a system on its way through an outage. Times count from its beginning.
type simulation struct {
	Scenario
	rule    course // of all tasks, or nil
	random  *rand.Rand
	arrived int       // tasks enqueued
	retries retryHeap // tasks that have failed, by the times at which they are due
	free    times     // when each worker is free
	result  Recovery
}

// waitingTask is a task that has failed.
type waitingTask struct {
	due, first time.Duration // when it is due, and when its first attempt began
	failures   int
	rule       course
	old        bool // whether it is of the backlog, and has not run yet
	failed     bool // whether it has failed in the simulation
}

// step runs the attempt that is due next, and reports whether the system has recovered.
func (m *simulation) step() bool {
	t := waitingTask{due: time.Duration(float64(m.arrived) / m.PerSecond * float64(time.Second))}
	if len(m.retries) > 0 && m.retries[0].due < t.due {
		t = heap.Pop(&m.retries).(waitingTask)
	} else {
		m.arrived++
		if t.rule = m.rule; t.rule == nil {
			t.rule = m.Backlog.newTask(m.random.Int64N)
		}
	}
	start := max(t.due, m.free[0])
	if t.failures == 0 {
		t.first = start
	}
	m.begins(t, start)
	old := t.old
	t.old = false
	took := m.Handler
	if start < m.Outage {
		took = m.Failure
	}
	m.free[0] = start + took
	heap.Fix(&m.free, 0)
	if start < m.Outage {
		m.fail(t, start+took)
		return false
	}
	if t.failures > 0 || old || start > t.due {
		m.result.Recovered = max(m.result.Recovered, start+took-m.Outage)
	}
	return len(m.retries) == 0 && start == t.due
}

// begins counts an attempt.
func (m *simulation) begins(t waitingTask, start time.Duration) {
	if t.failures > 0 {
		m.result.Retries++
	}
	m.result.LongestWait = max(m.result.LongestWait, start-max(t.due, 0))
	minute := int(start / time.Minute)
	for len(m.result.Load) <= minute {
		m.result.Load = append(m.result.Load, 0)
	}
	m.result.Load[minute]++
	m.result.Peak = max(m.result.Peak, m.result.Load[minute])
}

// fail makes a task wait that failed at a time, or gives it up.
func (m *simulation) fail(t waitingTask, at time.Duration) {
	t.failures++
	if !t.failed {
		t.failed = true
		m.result.Failed++
	}
	p := t.rule.at(at)
	_, jitter := p.Wait(int64(t.failures))
	anchor := at
	if jitter > 0 {
		anchor += time.Duration(m.random.Int64N(int64(jitter)))
	}
	if t.due = t.rule.due(anchor, t.failures); ends(p, t.failures, t.due-t.first) {
		m.result.Dead++
		return
	}
	if m.tooLate(t) {
		return
	}
	heap.Push(&m.retries, t)
}

// times is a heap of times.
type times []time.Duration

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (*times) Push(any)            { panic("ops: the number of workers does not change") }
func (*times) Pop() any            { panic("ops: the number of workers does not change") }

// retryHeap is a heap of tasks by the times at which they are due.
type retryHeap []waitingTask

func (r retryHeap) Len() int           { return len(r) }
func (r retryHeap) Less(i, j int) bool { return r[i].due < r[j].due }
func (r retryHeap) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *retryHeap) Push(t any)        { *r = append(*r, t.(waitingTask)) }
func (r *retryHeap) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
