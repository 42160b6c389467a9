package store

import (
	"context"
	"fmt"
	"math"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Filter selects tasks. Fields that are zero match all tasks.
type Filter struct {
	Queue, Kind string
	State       string
	After       int64 // only greater ids match
	Limit       int
}

// Task returns the task with an id. Its error wraps [ErrNotFound] if there is none.
func (s *Store) Task(ctx context.Context, id int64) (Task, error) {
	list, err := s.list(ctx, statements.ListParams{ID: true}, statements.Values{"id": id, "after": int64(math.MinInt64), "limit": 1})
	if err != nil {
		return Task{}, err
	}
	if len(list) == 0 {
		return Task{}, fmt.Errorf("%w: %d", ErrNotFound, id)
	}
	return list[0], nil
}

// Tasks lists the tasks that match a filter, in the order of their ids.
func (s *Store) Tasks(ctx context.Context, f Filter) ([]Task, error) {
	p, values := f.params()
	return s.list(ctx, p, values)
}

// TasksTx lists the tasks that match a filter as tx sees them.
func (s *Store) TasksTx(ctx context.Context, tx Tx, f Filter) (list []Task, err error) {
	p, values := f.params()
	err = unprepared{tx}.query(ctx, s.listStmt(p), values, nil, scanTasks(&list))
	return list, s.explain(err)
}

func (f Filter) params() (statements.ListParams, statements.Values) {
	return statements.ListParams{Queue: f.Queue != "", Kind: f.Kind != "", State: f.State != ""},
		statements.Values{"queue": f.Queue, "kind": f.Kind, "state": f.State, "after": f.After, "limit": f.Limit}
}

func (s *Store) list(ctx context.Context, p statements.ListParams, values statements.Values) (list []Task, err error) {
	err = s.read(ctx, s.listStmt(p), values, func() { list = list[:0] }, scanTasks(&list))
	return list, err
}

func (s *Store) listStmt(p statements.ListParams) statements.Stmt {
	return s.stmt(stmtKey{name: "list", filter: p}, func() statements.Stmt { return statements.List(s.server, s.tables, p) })
}

func scanTasks(list *[]Task) func(row) error {
	return func(r row) error {
		var t Task
		err := statements.TaskColumns.Scan(r, &t)
		*list = append(*list, t)
		return err
	}
}

// Attempts lists the recorded attempts of a task, oldest first.
func (s *Store) Attempts(ctx context.Context, id int64) (list []Attempt, err error) {
	err = s.read(ctx, s.fixed("attempts", statements.Attempts), statements.Values{"id": id}, func() { list = list[:0] }, func(r row) error {
		var a Attempt
		err := statements.AttemptColumns.Scan(r, &a)
		list = append(list, a)
		return err
	})
	return list, err
}

// Counts returns the number of tasks of each queue, kind and state.
func (s *Store) Counts(ctx context.Context) (list []Count, err error) {
	err = s.read(ctx, s.fixed("count", statements.CountTasks), nil, func() { list = list[:0] }, func(r row) error {
		var c Count
		err := statements.CountColumns.Scan(r, &c)
		list = append(list, c)
		return err
	})
	return list, err
}

// RetryTask makes a dead or cancelled task due, with all its attempts left. Its error
// wraps [ErrNotFound] if there is no such task, and is an [ExistsError] if an unfinished one
// has its unique key.
func (s *Store) RetryTask(ctx context.Context, id int64) error {
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		if err := s.takeBack(ctx, x, id); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.changeStateIn(ctx, x, "retry", func(server dialect.Server, tables dialect.Tables) statements.Stmt {
			return statements.Retry(server, tables, s.notify)
		}, id)
	})
	return err
}

// changeStateIn runs a statement that changes the state of one task. Its error wraps
// [ErrNotFound] if the statement matches no row.
func (s *Store) changeStateIn(ctx context.Context, x runner, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, id int64) error {
	result, err := x.exec(ctx, s.fixed(name, make), statements.Values{"id": id, "channel": s.Channel()}, nil)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w in a state that allows %s: %d", ErrNotFound, name, id)
	}
	return err
}
