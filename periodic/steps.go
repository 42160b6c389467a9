package periodic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// step is the next thing to do for a schedule.
type step struct {
	store.Schedule
	do action
}

type action int

const (
	tickStep    action = iota // its tick is taken when it is due
	restoreStep               // it was lost, and is stored again
	replaceStep               // no process has its definition, and this process stores its own
)

// wait returns how long it is until the step.
func (s step) wait() time.Duration {
	if s.do != tickStep || problem(s.Schedule) != nil {
		return 0
	}
	return store.Duration(s.Next - s.Now)
}

// nextSteps reads schedules, and returns the next steps of those that this process defines: of all,
// or of those with the given names. It also returns what this process has to say to others.
func (s *Scheduler) nextSteps(ctx context.Context, names []string) (steps []step, says talk, err error) {
	list, err := s.read(ctx, names)
	if err != nil {
		return nil, says, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, one := range list {
		d, ok := s.defined[one.Name]
		if !ok {
			continue
		}
		there[one.Name] = true
		if problem(one) != nil {
			steps = append(steps, step{one, tickStep})
			continue
		}
		if one.Defined < s.seen[one.Name].Defined {
			steps = append(steps, step{one, restoreStep})
			continue
		}
		s.seen[one.Name] = one
		if s.unanswered(one, &says) {
			steps = append(steps, step{one, replaceStep})
			continue
		}
		if one.Paused == 0 && (one.PerTick == 0 || d.taskAt != nil) {
			steps = append(steps, step{one, tickStep})
		}
	}
	if names == nil {
		names = slices.Collect(maps.Keys(s.defined))
	}
	for _, name := range names {
		if !there[name] {
			lost := step{do: restoreStep}
			lost.Name = name
			steps = append(steps, lost)
		}
	}
	return steps, says, nil
}

// read returns all schedules, or those with the given names.
func (s *Scheduler) read(ctx context.Context, names []string) ([]store.Schedule, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if names == nil {
		return s.store.Schedules(ctx)
	}
	return s.store.SchedulesByName(ctx, names)
}

// Limits of the ticks that are taken in one transaction.
const (
	maxTogether = 128
	maxTasks    = store.MaxBatch
)

// stepped is what became of a step that was to be taken with others.
type stepped struct {
	step
	taken  bool          // otherwise it is taken alone
	missed bool          // another process has taken it, or has locked its row
	wait   time.Duration // until the next one
}

// together takes steps of schedules that are due, many in one transaction. What has to be
// done alone it leaves: ticks with middleware around them, steps that are no ticks, and ticks
// that fail or that another process has locked.
func (s *Scheduler) together(ctx context.Context, due []step) []stepped {
	list := make([]stepped, len(due))
	for i, one := range due {
		list[i].step = one
	}
	if s.inside.Middleware() {
		return list
	}
	var ticks []store.Tick
	var steps []*stepped
	tasks := 0
	take := func() {
		if len(ticks) > 1 && ctx.Err() == nil {
			s.takeAll(ctx, ticks, steps)
		}
		ticks, steps, tasks = nil, nil, 0
	}
	for i := range list {
		one := &list[i]
		if one.do != tickStep {
			continue
		}
		tick, err := s.prepare(one.Schedule)
		if err != nil {
			continue // it fails again alone
		}
		if len(ticks) == maxTogether || tasks+len(tick.Entries) > maxTasks {
			take()
		}
		ticks, steps, tasks = append(ticks, tick), append(steps, one), tasks+len(tick.Entries)
	}
	take()
	return list
}

// takeAll takes ticks in one transaction, and notes what became of their steps.
func (s *Scheduler) takeAll(ctx context.Context, ticks []store.Tick, steps []*stepped) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	became, err := s.store.TickSchedules(ctx, ticks, false)
	for i, one := range steps {
		if one.missed = err == nil && !became[i].Taken; err == nil && became[i].Taken {
			one.taken, one.wait = true, s.ticked(ticks[i])
		}
	}
}

// take does a step, and returns how long it is until the next one. It returns a panic of
// middleware or of a codec as an error: the process, its other schedules and its handlers continue.
func (s *Scheduler) take(ctx context.Context, one step) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	switch one.do {
	case restoreStep:
		return 0, s.restore(ctx, one.Schedule)
	case replaceStep:
		_, err = s.replace(ctx, one.Schedule, store.Time(max(one.Asked, one.Last)), "no process has the old definition")
		return 0, err
	default:
		return s.tickOne(ctx, one.Schedule)
	}
}

// tickOne enqueues the tasks of a schedule that is due, unless another process has, and
// returns how long it is until its next tick.
func (s *Scheduler) tickOne(ctx context.Context, one store.Schedule) (time.Duration, error) {
	tick, err := s.prepare(one)
	if err != nil {
		return 0, err
	}
	var became store.Ticked
	err = s.inside.Through(ctx, tick.Entries, func(ctx context.Context, list []store.Entry) (ids []int64, err error) {
		tick.Entries = list
		all, err := s.store.TickSchedules(ctx, []store.Tick{tick}, true)
		if err != nil && !errors.Is(err, store.ErrOutrun) {
			return nil, err
		}
		if err == nil {
			became = all[0]
		}
		if !became.Taken {
			return nil, ErrTaken
		}
		return became.IDs, nil
	})
	if errors.Is(err, ErrTaken) {
		err = nil
	}
	if !became.Taken {
		if err == nil {
			err = s.notTaken(one)
		}
		return 0, err // read it again
	}
	return s.ticked(tick), err
}

// prepare returns the tick of a schedule that is due, with its tasks.
func (s *Scheduler) prepare(one store.Schedule) (t store.Tick, err error) {
	if err := unusable(one); err != nil {
		return t, err
	}
	spec := s.defined[one.Name].spec
	if d := s.defined[one.Name]; d.Spec != one.Spec || d.Zone != one.Zone {
		if spec, err = Parse(one.Spec, one.Zone); err != nil {
			return t, err // of a release that knows more
		}
	}
	ticks, next := due(one, spec)
	t = store.Tick{Was: one, Next: next.UnixMicro()}
	for i, tick := range ticks {
		entry := entryOf(one)
		if one.PerTick == 1 {
			if entry, err = s.defined[one.Name].taskAt(tick); err != nil {
				return t, err
			}
		}
		entry.Delay = int64(i) // so that they run in this order
		t.Entries = append(t.Entries, entry)
	}
	return t, nil
}

// ticked notes that a tick has been taken, and returns how long it is until the next one.
func (s *Scheduler) ticked(t store.Tick) time.Duration {
	one := t.Was
	s.mu.Lock()
	delete(s.held, one.Name)
	if was := s.seen[one.Name]; was.Next == one.Next {
		was.Next = t.Next
		s.seen[one.Name] = was
	}
	s.mu.Unlock()
	if len(t.Entries) == 0 {
		s.log.Info("falldue: a tick of a schedule was skipped", "schedule", one.Name, "tick", store.Time(one.Next), "unfinished_task", one.LastTask*int64(one.Alone*one.Unfinished))
	} else {
		s.inside.Enqueued(t.Entries)
	}
	return store.Duration(t.Next - one.Now)
}

// heldTick is what a row must still have for its tick to be taken, and how often it had that
// although the tick was not taken.
type heldTick struct {
	hash           string
	next, lastTask int64
	times          int
}

// notTaken notes a tick that could not be taken: another process was faster, or the row was
// changed. It returns an error if neither is true, since the row was the same the last time.
func (s *Scheduler) notTaken(one store.Schedule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tick := heldTick{one.Hash, one.Next, one.LastTask, 1}
	if was := s.held[one.Name]; was.hash == tick.hash && was.next == tick.next && was.lastTask == tick.lastTask {
		tick.times += was.times
	}
	if s.held[one.Name] = tick; tick.times == 1 {
		return nil
	}
	return fmt.Errorf("falldue: the row of schedule %s cannot be used: its tick at %s is due, and no statement finds it; correct the types of its columns, or remove the schedule",
		one.Name, store.Time(one.Next).Format(time.RFC3339))
}

// ErrTaken is the error that next returns in middleware around enqueues ([falldue.Queue.UseEnqueue]) if another process
// has enqueued the task of the tick, or the schedule has been changed. Middleware runs in each process that tries to
// enqueue the task.
var ErrTaken = errors.New("periodic: another process has the tick, or the schedule has been changed")

// entryOf returns the task of a schedule.
func entryOf(s store.Schedule) store.Entry {
	return store.Entry{Queue: s.Queue, Kind: s.Kind, Priority: s.Priority, Key: s.Key, MaxAttempts: s.MaxAttempts, Payload: s.Payload, Metadata: s.Metadata}
}
