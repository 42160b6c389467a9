package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

const (
	// look is the longest time between two looks at the table of schedules, in which a
	// schedule that was resumed or changed meanwhile is noticed.
	look = 5 * time.Second
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

	mu     sync.Mutex // held in Tick, and while the definitions are stored
	stored bool       // the definitions are
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
	s := &Scheduler{q: q, queue: queue, store: queue.Store(), log: queue.Logger(), defined: map[string]definition{}}
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
	s.mu.Lock()
	err := s.define(ctx)
	s.mu.Unlock()
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

// Tick stores the schedules unless it has, enqueues the tasks that are due, and returns how
// long it is until the next one is, or a negative duration if none will be. It is for programs
// that something else calls again and again, and for tests; [Scheduler.Run] calls it in a
// loop. The error joins those of the schedules whose tasks the database has not taken. The
// others have been enqueued all the same.
func (s *Scheduler) Tick(ctx context.Context) (next time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.define(ctx); err != nil {
		return 0, err
	}
	list, err := s.read(ctx)
	if err != nil {
		return 0, err
	}
	next = -1
	var failed []error
	for _, one := range list {
		if _, ok := s.defined[one.Name]; !ok || one.Paused != 0 {
			continue
		}
		wait := store.Duration(one.Next - one.Now)
		if wait <= 0 {
			if wait, err = s.tickOne(ctx, one); err != nil {
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

func (s *Scheduler) read(ctx context.Context) ([]store.Schedule, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.store.Schedules(ctx)
}

// tickOne enqueues the tasks of a schedule that is due, unless another process has, and
// returns how long it is until its next tick.
func (s *Scheduler) tickOne(ctx context.Context, one store.Schedule) (time.Duration, error) {
	spec, err := Parse(one.Spec, one.Zone)
	if err != nil {
		return 0, err // of a release that knows more
	}
	tasks, next := due(one, spec)
	entries := make([]store.Entry, tasks)
	for i := range entries {
		entries[i] = entryOf(one)
		entries[i].Delay = int64(i) // so that they run in this order
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	moved, err := s.store.TickSchedule(ctx, one, next.UnixMicro(), entries)
	if err != nil || !moved {
		return 0, err // look again: another process was faster, or it was changed
	}
	if tasks == 0 {
		s.log.Info("falldue: a tick was left out", "schedule", one.Name, "tick", store.Time(one.Next), "unfinished_task", one.LastTask*int64(one.Alone*one.Unfinished))
	} else {
		s.queue.Enqueued(entries)
	}
	return next.Sub(store.Time(one.Now)), nil
}

// entryOf returns the task of a schedule.
func entryOf(s store.Schedule) store.Entry {
	return store.Entry{Queue: s.Queue, Kind: s.Kind, Priority: s.Priority, Key: s.Key, MaxAttempts: s.MaxAttempts, Payload: s.Payload}
}

// maxTries limits how often a change is tried that others undo.
const maxTries = 20

var errContended = errors.New("periodic: the schedule changed each time it was read")

// define stores the definitions, unless that has been done.
func (s *Scheduler) define(ctx context.Context) error {
	if s.stored {
		return nil
	}
	for range maxTries {
		list, err := s.read(ctx)
		if err != nil {
			return fmt.Errorf("falldue: store the schedules: %w", err)
		}
		done, err := s.defineAll(ctx, list)
		if err != nil {
			return fmt.Errorf("falldue: store the schedules: %w", err)
		}
		if s.stored = done; done {
			return nil
		}
	}
	return errContended
}

// defineAll stores the definitions that differ from what is stored, and reports whether
// nothing was left to be done.
func (s *Scheduler) defineAll(ctx context.Context, list []store.Schedule) (done bool, err error) {
	there := map[string]store.Schedule{}
	for _, one := range list {
		there[one.Name] = one
	}
	now, err := s.now(ctx, list)
	if err != nil {
		return false, err
	}
	done = true
	for name, d := range s.defined {
		was, known := there[name]
		if known && was.Hash == d.Hash {
			continue
		}
		d.Started, d.Next = now, d.spec.Next(store.Time(now), store.Time(now)).UnixMicro()
		done = false // look again: another process may have been faster
		if !known {
			if _, err := s.store.PutSchedule(ctx, d.Definition); err != nil {
				return false, fmt.Errorf("schedule %s: %w", name, err)
			}
			continue
		}
		if was.Spec == d.Spec && was.Zone == d.Zone {
			d.Started, d.Next = was.Started, was.Next
		}
		changed, err := s.store.ChangeSchedule(ctx, was, d.Definition)
		if err != nil {
			return false, fmt.Errorf("schedule %s: %w", name, err)
		}
		if changed {
			s.log.Info("falldue: a schedule was changed", "schedule", name, "spec", d.Spec, "zone", d.Zone, "kind", d.Kind, "by", d.DefinedBy,
				"was_spec", was.Spec, "was_zone", was.Zone, "was_kind", was.Kind, "was_by", was.DefinedBy)
		}
	}
	return done, nil
}

// now returns the time by the database's clock.
func (s *Scheduler) now(ctx context.Context, list []store.Schedule) (int64, error) {
	if len(list) > 0 {
		return list[0].Now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := s.store.Now(ctx)
	return now.UnixMicro(), err
}
