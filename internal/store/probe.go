package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
)

// NewTask is a task that has been stored lately.
type NewTask = statements.NewTask

// NewestID returns the greatest id of a task, or 0 if there is none.
func (s *Store) NewestID(ctx context.Context) (id int64, err error) {
	err = s.read(ctx, s.fixed("newest id", statements.NewestID), nil, func() { id = 0 }, func(r row) error {
		id, err = r.int(0)
		return err
	})
	return id, err
}

// NewTasks returns up to limit tasks in the order of their ids, from the one after the
// id after on. It leaves out rows with values that falldue never writes.
func (s *Store) NewTasks(ctx context.Context, after int64, limit int) (list []NewTask, err error) {
	values := statements.Values{"after": after, "limit": limit}
	err = s.read(ctx, s.fixed("new tasks", statements.NewTasks), values, func() { list = nil }, func(r row) error {
		var t NewTask
		if statements.NewTaskColumns.Scan(r, &t) == nil {
			list = append(list, t)
		}
		return nil
	})
	return list, err
}
