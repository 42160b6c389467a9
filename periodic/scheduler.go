package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

const (
	// lookEvery is the longest time between two looks at the table of schedules, in which a
	// schedule that was resumed or changed meanwhile is noticed.
	lookEvery = 5 * time.Second
	// patience bounds what the database may take for one schedule.
	patience = 5 * time.Second
	// leastRest and maxRest are the shortest and the longest time that a schedule is left
	// alone after the database has refused its task.
	leastRest = time.Second
	maxRest   = time.Minute
)

// Scheduler enqueues the tasks of schedules. It is safe for concurrent use, and starts
// goroutines only in Run and RunWorker, which wait for them.
type Scheduler struct {
	q       *falldue.Queue
	queue   hooks.Queue
	store   *store.Store
	log     *slog.Logger
	defined map[string]definition

	ticking sync.Mutex // held in Tick, and while the definitions are stored
	stored  bool       // the definitions are

	mu   sync.Mutex
	seen map[string]store.Schedule // the schedules that this process defines, as it knows them to have been stored last
	held map[string]tickID         // ticks that could not be taken, by their schedules
}

// New returns a scheduler of schedules, whose tasks go into q. It does not use the database.
// A process ticks the schedules that its code defines. A Scheduler belongs to its queue:
// a test that moves the clock of q with package tasktest makes it tick.
//
// The error wraps [falldue.ErrInvalid] for a schedule that is invalid, and for two of one
// name.
func New(q *falldue.Queue, schedules ...Schedule) (*Scheduler, error) {
	if q == nil {
		return nil, invalid("the queue is nil")
	}
	queue := hooks.QueueOf(q)
	s := &Scheduler{q: q, queue: queue, store: queue.Store(), log: queue.Logger(), defined: map[string]definition{}, seen: map[string]store.Schedule{}, held: map[string]tickID{}}
	for _, one := range schedules {
		d, err := one.define(queue)
		if err != nil {
			return nil, err
		}
		if _, ok := s.defined[d.Name]; ok {
			return nil, invalid("schedule %s is defined twice", d.Name)
		}
		d.DefinedBy = fmt.Sprintf("%.255s", hooks.Origin())
		s.defined[d.Name] = d
	}
	queue.AddTicker(s.Tick)
	return s, nil
}

// Run stores the schedules and enqueues their tasks until ctx ends. Then it returns nil. It
// returns an error at once if it cannot store the schedules: the tables are missing
// ([falldue.ErrNotMigrated]), or the database does not answer. A database that fails later is
// logged, and Run tries again until it answers.
func (s *Scheduler) Run(ctx context.Context) error {
	s.ticking.Lock()
	err := s.define(ctx)
	s.ticking.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	newRun(s).loop(ctx)
	return nil
}

// RunWorker is Run beside the worker of the queue, [falldue.Queue.Run]. It returns when both
// have ended, and each ends when the other one returns an error.
func (s *Scheduler) RunWorker(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticking := make(chan error, 1)
	go func() {
		defer cancel()
		ticking <- s.Run(ctx)
	}()
	err := s.q.Run(ctx)
	cancel()
	return errors.Join(err, <-ticking)
}

// Tick stores the schedules if it has not done so yet, enqueues the tasks that are due, and
// returns how long it is until the next one is due, or a negative duration if none will be. It is
// for programs that are started again and again, and for tests; [Scheduler.Run] is the loop. The
// error joins those of the schedules whose tasks the database has refused. The tasks of the
// others have been enqueued.
func (s *Scheduler) Tick(ctx context.Context) (next time.Duration, err error) {
	s.ticking.Lock()
	defer s.ticking.Unlock()
	if err := s.define(ctx); err != nil {
		return 0, err
	}
	steps, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	next = -1
	var failed []error
	for _, one := range steps {
		wait := one.wait()
		if wait <= 0 {
			if wait, err = s.take(ctx, one); err != nil {
				failed = append(failed, fmt.Errorf("schedule %s: %w", one.Name, err))
				wait = leastRest
			}
		}
		if next < 0 || wait < next {
			next = max(wait, 0)
		}
	}
	return next, errors.Join(failed...)
}

// step is what is to be done next for a schedule.
type step struct {
	store.Schedule
	lost bool // it is to be stored again; otherwise to tick
}

// wait returns how long it is until the step.
func (s step) wait() time.Duration {
	if s.lost || problem(s.Schedule) != nil {
		return 0
	}
	return store.Duration(s.Next - s.Now)
}

// look reads the schedules, and returns the next steps of those that this process defines.
func (s *Scheduler) look(ctx context.Context) (steps []step, err error) {
	list, err := s.read(ctx)
	if err != nil {
		return nil, err
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
			steps = append(steps, step{one, false})
			continue
		}
		if one.Defined < s.seen[one.Name].Defined {
			steps = append(steps, step{one, true})
			continue
		}
		s.seen[one.Name] = one
		if one.Paused == 0 && (one.PerTick == 0 || d.taskAt != nil) {
			steps = append(steps, step{one, false})
		}
	}
	for name := range s.defined {
		if !there[name] {
			lost := step{lost: true}
			lost.Name = name
			steps = append(steps, lost)
		}
	}
	return steps, nil
}

func (s *Scheduler) read(ctx context.Context) ([]store.Schedule, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.store.Schedules(ctx)
}

// take does a step, and returns how long it is until the next one. A panic, of middleware or of a
// codec, is an error: it must not end the process, whose other schedules and handlers go on.
func (s *Scheduler) take(ctx context.Context, one step) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if one.lost {
		return 0, s.restore(ctx, one.Schedule)
	}
	return s.tickOne(ctx, one.Schedule)
}

// tickOne enqueues the tasks of a schedule that is due, unless another process has, and
// returns how long it is until its next tick.
func (s *Scheduler) tickOne(ctx context.Context, one store.Schedule) (time.Duration, error) {
	if err := unusable(one); err != nil {
		return 0, err
	}
	spec, err := Parse(one.Spec, one.Zone)
	if err != nil {
		return 0, err // of a release that knows more
	}
	ticks, next := due(one, spec)
	entries, err := s.entries(one, ticks)
	if err != nil {
		return 0, err
	}
	moved := false
	err = s.queue.Through(ctx, entries, func(ctx context.Context, list []store.Entry) (ids []int64, err error) {
		entries = list
		if ids, moved, err = s.store.TickSchedule(ctx, one, next.UnixMicro(), list); err == nil && !moved {
			err = ErrTaken
		}
		return ids, err
	})
	if errors.Is(err, ErrTaken) {
		err = nil
	}
	if !moved && err == nil {
		err = s.notMoved(one)
	}
	if !moved {
		return 0, err // look again
	}
	s.mu.Lock()
	delete(s.held, one.Name)
	if was := s.seen[one.Name]; was.Next == one.Next {
		was.Next = next.UnixMicro()
		s.seen[one.Name] = was
	}
	s.mu.Unlock()
	if len(ticks) == 0 {
		s.log.Info("falldue: a tick was left out", "schedule", one.Name, "tick", store.Time(one.Next), "unfinished_task", one.LastTask*int64(one.Alone*one.Unfinished))
	} else {
		s.queue.Enqueued(entries)
	}
	return next.Sub(store.Time(one.Now)), err
}

// tickID is what a row must still have for its tick to be taken.
type tickID struct {
	hash           string
	next, lastTask int64
}

// notMoved notes a tick that could not be taken: another process was faster, or the row was
// changed. It returns an error if neither is true, since the row was the same the last time.
func (s *Scheduler) notMoved(one store.Schedule) error {
	tick := tickID{one.Hash, one.Next, one.LastTask}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[one.Name] != tick {
		s.held[one.Name] = tick
		return nil
	}
	return fmt.Errorf("falldue: the row of schedule %s cannot be used: its tick at %s is due, and no statement finds it; correct the types of its columns, or remove the schedule",
		one.Name, store.Time(one.Next).Format(time.RFC3339))
}

// ErrTaken is the error with which next ends in middleware around enqueues
// ([falldue.Queue.UseEnqueue]) if another process has enqueued the tasks of the tick, or the
// schedule has been changed. Middleware runs in each process that tries to.
var ErrTaken = errors.New("periodic: another process has the tick, or the schedule has been changed")

// entries returns the tasks of ticks.
func (s *Scheduler) entries(one store.Schedule, ticks []time.Time) (entries []store.Entry, err error) {
	for i, tick := range ticks {
		entry := entryOf(one)
		if one.PerTick == 1 {
			if entry, err = s.defined[one.Name].taskAt(tick); err != nil {
				return nil, err
			}
		}
		entry.Delay = int64(i) // so that they run in this order
		entries = append(entries, entry)
	}
	return entries, nil
}

// entryOf returns the task of a schedule.
func entryOf(s store.Schedule) store.Entry {
	return store.Entry{Queue: s.Queue, Kind: s.Kind, Priority: s.Priority, Key: s.Key, MaxAttempts: s.MaxAttempts, Payload: s.Payload, Metadata: s.Metadata}
}
