package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/build"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

const (
	// readEvery is the longest time between two reads of the table of schedules, in which a
	// schedule that was resumed or changed meanwhile is noticed.
	readEvery = 5 * time.Second
	// patience bounds what the database may take for one schedule.
	patience = 5 * time.Second
	// leastRest and maxRest are the shortest and the longest time that a schedule is left
	// alone after the database has refused its task.
	leastRest = time.Second
	maxRest   = time.Minute
)

// Scheduler enqueues the tasks of schedules. It is safe for concurrent use. Only Run and RunWorker start goroutines,
// and they wait for these goroutines.
type Scheduler struct {
	q       *falldue.Queue
	inside  queue
	store   *store.Store
	log     *slog.Logger
	defined map[string]definition

	ticking sync.Mutex // held in Tick, and while the definitions are stored
	stored  bool       // the definitions are

	mu   sync.Mutex
	seen map[string]store.Schedule // the schedules that this process defines, as it knows them to have been stored last
	held map[string]heldTick       // ticks that could not be taken, by their schedules
	// askAgain is when to ask again who has the definitions of schedules, in microseconds by
	// the database's clock.
	askAgain map[string]int64
}

// queue is what schedules use of a *falldue.Queue.
type queue interface {
	Store() *store.Store
	SparseLogger() *slog.Logger
	Entry(task falldue.EnqueueParams) (e store.Entry, hash string, err error)
	Through(ctx context.Context, entries []store.Entry, put func(context.Context, []store.Entry) (ids []int64, err error)) error
	Middleware() bool
	Release() string
	Enqueued(entries []store.Entry)
	StoredNote(notes []falldue.Note) (falldue.Note, error)
	AddTicker(tick func(context.Context) (next time.Duration, err error))
}

// New returns a scheduler that enqueues the tasks of schedules in q. It does not use the database. A process ticks only
// the schedules that its code defines. When a test moves the clock of q with package tasktest, the scheduler ticks,
// too.
//
// The error wraps [falldue.ErrInvalid] for an invalid schedule, and for two schedules with the same name.
func New(q *falldue.Queue, schedules ...Schedule) (*Scheduler, error) {
	if q == nil {
		return nil, invalid("the queue is nil")
	}
	inside := hooks.Of[queue](q)
	s := &Scheduler{q: q, inside: inside, store: inside.Store(), log: inside.SparseLogger(), defined: map[string]definition{}, seen: map[string]store.Schedule{}, held: map[string]heldTick{}, askAgain: map[string]int64{}}
	for _, one := range schedules {
		d, err := one.define(inside)
		if err != nil {
			return nil, err
		}
		if _, ok := s.defined[d.Name]; ok {
			return nil, invalid("schedule %s is defined twice", d.Name)
		}
		d.DefinedBy = fmt.Sprintf("%.255s", build.Origin(inside.Release()))
		s.defined[d.Name] = d
	}
	inside.AddTicker(s.Tick)
	return s, nil
}

// Run stores the schedules and enqueues their tasks until ctx ends. Then it returns nil. Run returns an error
// immediately if it cannot store the schedules, because the tables are missing ([falldue.ErrNotMigrated]) or the
// database does not answer. If the database fails later, Run logs the error, and tries again until it answers.
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

// RunWorker calls Run and the queue's [falldue.Queue.Run] concurrently. It returns when both calls have ended. If one
// call returns an error, RunWorker ends the other.
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

// Tick stores the schedules if it has not done so yet, and enqueues the tasks that are due. It returns the time until
// the next task is due, or a negative duration if no task will fall due. Tick is for programs that are started repeatedly,
// and for tests: [Scheduler.Run] does the same in a loop. If the database refuses the tasks of some schedules, the
// error joins the errors of these schedules, and the tasks of the other schedules have been enqueued.
func (s *Scheduler) Tick(ctx context.Context) (next time.Duration, err error) {
	s.ticking.Lock()
	defer s.ticking.Unlock()
	if err := s.define(ctx); err != nil {
		return 0, err
	}
	steps, says, err := s.nextSteps(ctx, nil)
	if err == nil {
		err = s.say(ctx, says)
	}
	if err != nil {
		return 0, err
	}
	next = -1
	until := func(wait time.Duration) {
		if next < 0 || wait < next {
			next = max(wait, 0)
		}
	}
	var due []step
	for _, one := range steps {
		if wait := one.wait(); wait > 0 {
			until(wait)
		} else {
			due = append(due, one)
		}
	}
	var failed []error
	for _, one := range s.together(ctx, due) {
		if !one.taken {
			if one.wait, err = s.take(ctx, one.step); err != nil {
				failed = append(failed, fmt.Errorf("schedule %s: %w", one.Name, err))
				one.wait = leastRest
			}
		}
		until(one.wait)
	}
	return next, errors.Join(failed...)
}
