package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

type (
	// Definition has the tasks that a schedule enqueues, and their times.
	Definition = statements.Definition
	// SchedulePause describes whether a schedule is paused.
	SchedulePause = statements.SchedulePause
)

// Schedule is a schedule as it is stored.
type Schedule struct {
	statements.Schedule
	Corrupt error // not nil if columns of the row hold no numbers or no texts
}

// Schedules returns all schedules, ordered by name.
func (s *Store) Schedules(ctx context.Context) ([]Schedule, error) {
	return s.readSchedules(ctx, s.fixed("read schedules", statements.ReadSchedules), nil)
}

// SchedulesByName returns the schedules of those names that are there, up to [MaxBatch].
func (s *Store) SchedulesByName(ctx context.Context, names []string) ([]Schedule, error) {
	rows := statements.NameColumns.Rows(len(names), func(i int) *string { return &names[i] })
	return s.readSchedules(ctx, s.batch("schedules by name", len(names), statements.SchedulesByName), rows)
}

func (s *Store) readSchedules(ctx context.Context, stmt statements.Stmt, rows []statements.Row) (list []Schedule, err error) {
	err = s.readRows(ctx, stmt, nil, rows, func() { list = nil }, func(r row) error {
		var one Schedule
		one.Corrupt = statements.ScheduleColumns.Scan(r, &one.Schedule) // columns that can be read are set nevertheless
		list = append(list, one)
		return nil
	})
	return list, s.explain(err)
}

// PutSchedule stores a schedule with its pause, and reports false if its name is taken.
func (s *Store) PutSchedule(ctx context.Context, d Definition, p SchedulePause) (bool, error) {
	values := statements.Values{}
	statements.DefinitionColumns.Set(values, &d)
	statements.SchedulePauseColumns.Set(values, &p)
	return s.changeSchedule(ctx, "put schedule", statements.PutSchedule, values)
}

// ChangeSchedule replaces the definition of a schedule, and reports false if the schedule is
// no longer as in was.
func (s *Store) ChangeSchedule(ctx context.Context, was Schedule, d Definition) (bool, error) {
	values := statements.Values{"was": was.Hash, "was_next": was.Next, "was_asked": was.Asked}
	statements.DefinitionColumns.Set(values, &d)
	return s.changeSchedule(ctx, "change schedule", statements.ChangeSchedule, values)
}

// AskSchedules notes that this process asks which processes have the definitions of schedules.
func (s *Store) AskSchedules(ctx context.Context, names []string) error {
	return s.onNames(ctx, "ask schedules", statements.AskSchedules, names)
}

// AnswerSchedules notes that this process has the definitions of schedules.
func (s *Store) AnswerSchedules(ctx context.Context, names []string) error {
	return s.onNames(ctx, "answer schedules", statements.AnswerSchedules, names)
}

func (s *Store) onNames(ctx context.Context, name string, make func(dialect.Server, dialect.Tables, int) statements.Stmt, names []string) error {
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		return struct{}{}, inBatches(s, names, func(batch []string) error {
			_, err := onSchedules(ctx, s, x, name, make, statements.NameColumns, batch)
			return err
		})
	})
	return err
}

// SetSchedule sets whether a schedule is paused from now on, and moves its next tick. It reports
// false if the schedule is no longer as in was.
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
	return once(ctx, s, func(x runner) (bool, error) {
		result, err := x.exec(ctx, s.fixed(name, make), values, nil)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n > 0, err
	})
}

// Tick is a tick of a schedule.
type Tick struct {
	Was     Schedule // as it was read
	Next    int64    // the tick after this one
	Entries []Entry  // the tasks to store, if any
}

// Ticked is the result of a [Tick].
type Ticked struct {
	Taken bool
	IDs   []int64 // of its tasks
}

// TickSchedules moves schedules to their next ticks and stores the tasks, in one transaction. It
// leaves out schedules that have changed, are not due by the database's clock, or are paused. Unless
// wait is set, it also leaves out schedules whose rows another transaction has locked.
func (s *Store) TickSchedules(ctx context.Context, ticks []Tick, wait bool) ([]Ticked, error) {
	return inTx(ctx, s, func(x runner) ([]Ticked, error) {
		due, err := s.lockDue(ctx, x, ticks, wait)
		if err != nil {
			return nil, err
		}
		became := make([]Ticked, len(ticks))
		var moved []statements.MovedSchedule
		var entries []Entry
		for i, t := range ticks {
			was := statements.DueSchedule{Name: t.Was.Name, Hash: t.Was.Hash, Next: t.Was.Next, LastTask: t.Was.LastTask}
			if became[i].Taken = due[was.Name] == was; became[i].Taken {
				moved, entries = append(moved, statements.MovedSchedule{DueSchedule: was, To: t.Next}), append(entries, t.Entries...)
			}
		}
		if n, err := onSchedules(ctx, s, x, "move schedules", statements.MoveSchedules, statements.MovedScheduleColumns, moved); err != nil || int(n) < len(moved) {
			return nil, cmp.Or(err, ErrOutrun)
		}
		ids, err := s.insert(ctx, x, entries)
		if err != nil {
			return nil, err
		}
		var noted []statements.ScheduledTask
		for i, t := range ticks {
			if n := len(t.Entries); became[i].Taken && n > 0 {
				became[i].IDs, ids = ids[:n:n], ids[n:]
				noted = append(noted, statements.ScheduledTask{Name: t.Was.Name, Task: became[i].IDs[n-1]})
			}
		}
		_, err = onSchedules(ctx, s, x, "note scheduled", statements.NoteScheduled, statements.ScheduledTaskColumns, noted)
		return became, err
	})
}

// ErrOutrun is returned by [Store.TickSchedules] if another process has taken one of the ticks
// after it was found due, on an engine that locks no rows.
var ErrOutrun = errors.New("another process has taken a tick")

// lockDue locks the rows of ticks that are due, and returns them by their names.
func (s *Store) lockDue(ctx context.Context, x runner, ticks []Tick, wait bool) (map[string]statements.DueSchedule, error) {
	name := "lock due"
	if wait {
		name = "wait for due"
	}
	stmt := s.batch(name, len(ticks), func(server dialect.Server, tables dialect.Tables, size int) statements.Stmt {
		return statements.LockDue(server, tables, size, wait)
	})
	rows := statements.NameColumns.Rows(len(ticks), func(i int) *string { return &ticks[i].Was.Name })
	due := map[string]statements.DueSchedule{}
	err := x.query(ctx, stmt, nil, rows, func(r row) error {
		var d statements.DueSchedule
		err := statements.DueScheduleColumns.Scan(r, &d)
		due[d.Name] = d
		return err
	})
	return due, err
}

// onSchedules runs a statement on a batch of schedules, and returns how many it has changed.
func onSchedules[T any](ctx context.Context, s *Store, x runner, name string, make func(dialect.Server, dialect.Tables, int) statements.Stmt,
	columns statements.Columns[T], list []T) (n int64, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	rows := columns.Rows(len(list), func(i int) *T { return &list[i] })
	result, err := x.exec(ctx, s.batch(name, len(list), make), nil, rows)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// TriggerSchedule stores a task of a schedule, and returns its id. The next tick does not change. The
// error wraps [ErrNotFound] if there is no such schedule any more.
func (s *Store) TriggerSchedule(ctx context.Context, name string, e Entry) (id int64, err error) {
	return inTx(ctx, s, func(x runner) (int64, error) {
		ids, err := s.insert(ctx, x, []Entry{e})
		if err != nil {
			return 0, err
		}
		n, err := onSchedules(ctx, s, x, "note scheduled", statements.NoteScheduled, statements.ScheduledTaskColumns, []statements.ScheduledTask{{Name: name, Task: ids[0]}})
		if err == nil && n == 0 {
			err = Missing(fmt.Sprintf("falldue: schedule %.100q has been removed", name))
		}
		return ids[0], err
	})
}
