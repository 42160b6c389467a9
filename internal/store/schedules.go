package store

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

type (
	// Definition is what a schedule enqueues and when.
	Definition = statements.Definition
	// SchedulePause is whether a schedule is paused.
	SchedulePause = statements.SchedulePause
)

// Schedule is a schedule as it is stored.
type Schedule struct {
	statements.Schedule
	Corrupt error // not nil if columns of the row hold no numbers or no texts
}

// Schedules returns all schedules, ordered by name.
func (s *Store) Schedules(ctx context.Context) (list []Schedule, err error) {
	err = s.read(ctx, s.fixed("read schedules", statements.ReadSchedules), nil, func() { list = nil }, func(r row) error {
		var one Schedule
		one.Corrupt = statements.ScheduleColumns.Scan(r, &one.Schedule) // columns that can be read are set nevertheless
		list = append(list, one)
		return nil
	})
	return list, s.explain(err)
}

// PutSchedule stores a schedule with its pause, and reports false if there is one of its name.
func (s *Store) PutSchedule(ctx context.Context, d Definition, p SchedulePause) (bool, error) {
	values := statements.Values{}
	statements.DefinitionColumns.Set(values, &d)
	statements.SchedulePauseColumns.Set(values, &p)
	return s.changeSchedule(ctx, "put schedule", statements.PutSchedule, values)
}

// ChangeSchedule replaces the definition of a schedule, and reports false if it is not as
// was any more.
func (s *Store) ChangeSchedule(ctx context.Context, was Schedule, d Definition) (bool, error) {
	values := statements.Values{"was": was.Hash, "was_next": was.Next}
	statements.DefinitionColumns.Set(values, &d)
	return s.changeSchedule(ctx, "change schedule", statements.ChangeSchedule, values)
}

// SetSchedule sets whether a schedule is paused from now on, moves its next tick, and reports
// false if it is not as was any more.
func (s *Store) SetSchedule(ctx context.Context, was Schedule, p SchedulePause, next int64) (bool, error) {
	return s.changeSchedule(ctx, "set schedule", statements.SetSchedule, statements.Values{
		"name": was.Name, "was_paused": int64(was.Paused), "paused": int64(p.Paused), "paused_by": p.PausedBy, "paused_why": p.PausedWhy,
		"was_next": was.Next, "next": next,
	})
}

// DropSchedule deletes a schedule, and reports false if there is none.
func (s *Store) DropSchedule(ctx context.Context, name string) (bool, error) {
	return s.changeSchedule(ctx, "drop schedule", statements.DropSchedule, statements.Values{"name": name})
}

// changeSchedule runs a statement on a schedule, and reports whether it changed a row.
func (s *Store) changeSchedule(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, values statements.Values) (bool, error) {
	return once(ctx, s, func(x runner) (bool, error) { return s.changesSchedule(ctx, x, name, make, values) })
}

func (s *Store) changesSchedule(ctx context.Context, x runner, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, values statements.Values) (bool, error) {
	result, err := x.exec(ctx, s.fixed(name, make), values, nil)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// TickSchedule moves the next tick of a schedule and stores the tasks of the ticks until
// then, in one transaction, and returns their ids. It reports false, and has done nothing, if
// the schedule is not as was any more, not due by the database's clock, or paused.
func (s *Store) TickSchedule(ctx context.Context, was Schedule, next int64, entries []Entry) (ids []int64, moved bool, err error) {
	moved, err = inTx(ctx, s, func(x runner) (bool, error) {
		moved, err := s.changesSchedule(ctx, x, "move schedule", statements.MoveSchedule, statements.Values{
			"name": was.Name, "hash": was.Hash, "last_task": was.LastTask, "was_next": was.Next, "next": next,
		})
		if err != nil || !moved || len(entries) == 0 {
			return moved, err
		}
		ids, _, err = s.enqueueScheduled(ctx, x, was.Name, entries)
		return true, err
	})
	return ids, moved, err
}

// TriggerSchedule stores a task of a schedule, and returns its id. The next tick stays. The
// error wraps [ErrNotFound] if there is no such schedule any more.
func (s *Store) TriggerSchedule(ctx context.Context, name string, e Entry) (id int64, err error) {
	return inTx(ctx, s, func(x runner) (int64, error) {
		ids, there, err := s.enqueueScheduled(ctx, x, name, []Entry{e})
		if err == nil && !there {
			err = fmt.Errorf("%w: schedule %q has been removed", ErrNotFound, name)
		}
		if err != nil {
			return 0, err
		}
		return ids[0], nil
	})
}

// enqueueScheduled stores tasks of a schedule, and returns their ids and whether the
// schedule is there.
func (s *Store) enqueueScheduled(ctx context.Context, x runner, name string, entries []Entry) (ids []int64, there bool, err error) {
	if ids, err = s.insert(ctx, x, entries); err != nil {
		return nil, false, err
	}
	there, err = s.changesSchedule(ctx, x, "note scheduled", statements.NoteScheduled, statements.Values{"name": name, "task": ids[len(ids)-1]})
	return ids, there, err
}
