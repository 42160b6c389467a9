package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// NewTask is a task that has been stored recently.
type NewTask = statements.NewTask

// News shows whether there are tasks or changes that a worker does not know.
type News struct {
	Task    int64 // the greatest id of a task, or 0
	Changes int64 // the sum of the ids of recent changes, which differs after another change
}

// News returns the news. Changes that were made within back before now are recent.
func (s *Store) News(ctx context.Context, back time.Duration) (n News, err error) {
	err = s.read(ctx, s.fixed("news", statements.News), statements.Values{"back": back.Microseconds()}, func() { n = News{} }, func(r row) error {
		task, err := r.int(0)
		if err != nil {
			return err
		}
		changes, err := r.int(1)
		n = News{task, changes}
		return err
	})
	return n, err
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
