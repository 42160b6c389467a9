package periodic

import (
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// Info describes a schedule as it is stored.
type Info struct {
	Name, Spec, Zone string
	// Kind and Queue are the kind and the queue of the schedule's tasks.
	Kind, Queue string
	Missed      Missed
	NoOverlap   bool
	Paused      bool
	// PausedAt is when the schedule was paused, and PausedBy and PausedWhy are the note of the pause. These fields are
	// zero if the schedule is not paused.
	PausedAt            time.Time
	PausedBy, PausedWhy string
	// DefinedBy names the host of the process that stored the definition, and its release if the
	// build has one.
	DefinedBy string
	// Defined is when the definition was stored.
	Defined time.Time
	// Next is the next tick. If the tick was due long ago, no running process defines the schedule, or the processes do
	// not run their schedules.
	Next time.Time
	// Last is when the schedule last enqueued a task, or zero, and LastTask is the ID of that task.
	Last     time.Time
	LastTask int64
	// Now is the time when the schedule was read. All times are by the database's clock.
	Now time.Time
	// Err is the reason why the row of the schedule is invalid, or nil. If a person has edited the row into something
	// invalid, other fields may be wrong, and the schedule does not tick.
	Err error
}

// lateAfter is how long after its tick a schedule is late. Processes that run it read it every
// readEvery at least.
const lateAfter = time.Minute

// Late reports whether the schedule is not paused and its next tick was due more than a minute ago: no running process
// defines the schedule, or none can reach the database.
func (i Info) Late() bool { return !i.Paused && i.Now.Sub(i.Next) > lateAfter }

// List returns all schedules, ordered by name.
func List(ctx context.Context, q *falldue.Queue) ([]Info, error) {
	rows, err := hooks.StoreOf(q).Schedules(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the schedules: %w", err)
	}
	list := make([]Info, len(rows))
	for i, s := range rows {
		list[i] = Info{
			Name: s.Name, Spec: s.Spec, Zone: s.Zone, Kind: s.Kind, Queue: s.Queue, Missed: Missed(s.Missed), NoOverlap: s.Alone != 0, Paused: s.Paused != 0,
			DefinedBy: s.DefinedBy, Defined: store.Time(s.Defined), Next: store.Time(s.Next), LastTask: s.LastTask, Now: store.Time(s.Now), Err: problem(s),
		}
		if s.Paused != 0 {
			list[i].PausedAt, list[i].PausedBy, list[i].PausedWhy = store.Time(s.PausedAt), s.PausedBy, s.PausedWhy
		}
		if s.Last != 0 {
			list[i].Last = store.Time(s.Last)
		}
	}
	return list, nil
}

// Pause stops a schedule from enqueuing until [Resume], in all processes and through deploys. If the schedule is
// already paused, Pause does nothing, and the first note stays. The error wraps [falldue.ErrNotFound] if there is no
// such schedule, and [falldue.ErrInvalid] for texts that are too long, or more than one note. If the row of the
// schedule is invalid, Pause returns another error: see [Info].Err.
func Pause(ctx context.Context, q *falldue.Queue, name string, notes ...falldue.Note) error {
	n, err := hooks.Of[queue](q).StoredNote(notes)
	if err != nil {
		return fmt.Errorf("schedule %.100q: %w", name, err)
	}
	return setPaused(ctx, q, name, store.SchedulePause{Paused: 1, PausedBy: n.Who, PausedWhy: n.Why})
}

// Resume lets a paused schedule continue at its next tick. Ticks that passed during the pause are
// skipped. Resume does nothing if the schedule is not paused. Errors are as for [Pause]. Processes
// notice the change within 5 seconds.
func Resume(ctx context.Context, q *falldue.Queue, name string) error {
	return setPaused(ctx, q, name, store.SchedulePause{})
}

func setPaused(ctx context.Context, q *falldue.Queue, name string, pause store.SchedulePause) error {
	s := hooks.StoreOf(q)
	for range maxTries {
		was, err := find(ctx, s, name)
		if err != nil || (was.Paused != 0) == (pause.Paused != 0) {
			return err
		}
		next := was.Next
		if pause.Paused == 0 {
			spec, err := Parse(was.Spec, was.Zone)
			if err != nil {
				return fmt.Errorf("schedule %s: %w", name, err)
			}
			next = max(next, spec.Next(store.Time(was.Started), store.Time(was.Now)).UnixMicro())
		}
		if done, err := s.SetSchedule(ctx, was, pause, next); done || err != nil {
			return err
		}
	}
	return errContended
}

// Trigger enqueues a task of a schedule now, and returns its ID, even if the schedule is paused or its last task is
// not finished. The next tick does not change.
//
// If Schedule.TaskAt makes the tasks, Trigger adds a tick and returns 0. Within 5 seconds, a process that defines the
// schedule enqueues the task of that tick, unless NoOverlap skips it. The error wraps [falldue.ErrInvalid] if such a
// schedule is paused. Other errors are as for [Pause].
func Trigger(ctx context.Context, q *falldue.Queue, name string) (id int64, err error) {
	inside := hooks.Of[queue](q)
	one, err := find(ctx, inside.Store(), name)
	if err != nil {
		return 0, err
	}
	if one.PerTick == 1 {
		return 0, addTick(ctx, inside.Store(), one)
	}
	err = inside.Through(ctx, []store.Entry{entryOf(one)}, func(ctx context.Context, list []store.Entry) ([]int64, error) {
		stored, err := inside.Store().TriggerSchedule(ctx, name, list[0])
		if err != nil {
			return nil, err
		}
		id = stored
		inside.Enqueued(list[:1])
		return []int64{id}, nil
	})
	if err != nil {
		return id, fmt.Errorf("schedule %s: %w", name, err)
	}
	return id, nil
}

// addTick makes the next tick of a schedule now. The one after it is then the one that it has
// now.
func addTick(ctx context.Context, s *store.Store, one store.Schedule) error {
	for range maxTries {
		switch {
		case one.Paused != 0:
			return invalid("schedule %s is paused and cannot be triggered: its tasks are made at its ticks (Schedule.TaskAt); resume it first", one.Name)
		case one.Next <= one.Now:
			return nil
		}
		done, err := s.SetSchedule(ctx, one, store.SchedulePause{}, one.Now)
		if err != nil || done {
			return err
		}
		if one, err = find(ctx, s, one.Name); err != nil {
			return err
		}
	}
	return errContended
}

// Remove deletes a schedule that no process defines any more. A process that still defines the schedule stores it
// again. Tasks that the schedule has enqueued stay. Errors are as for [Pause].
func Remove(ctx context.Context, q *falldue.Queue, name string) error {
	there, err := hooks.StoreOf(q).DropSchedule(ctx, name)
	if err == nil && !there {
		err = missing(name)
	}
	return err
}

func find(ctx context.Context, s *store.Store, name string) (store.Schedule, error) {
	list, err := s.Schedules(ctx)
	if err != nil {
		return store.Schedule{}, fmt.Errorf("read the schedules: %w", err)
	}
	for _, one := range list {
		if one.Name == name {
			return one, unusable(one)
		}
	}
	return store.Schedule{}, missing(name)
}

// missing returns the error for a schedule that does not exist.
func missing(name string) error {
	return store.Missing(fmt.Sprintf("falldue: no schedule %.100q", name))
}
