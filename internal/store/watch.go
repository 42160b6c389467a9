package store

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Watched is a task as a watcher sees it.
type Watched = statements.Watched

// WatchTasks returns the tasks with the ids. It leaves out tasks that do not exist.
func (s *Store) WatchTasks(ctx context.Context, ids []int64) (list []Watched, err error) {
	for batch := range slices.Chunk(ids, MaxBatch) {
		rows := statements.IDColumns.Rows(len(batch), func(i int) *Key { return &Key{TaskID: batch[i]} })
		n := len(list)
		err = s.readRows(ctx, s.batch("watch tasks", len(batch), statements.WatchTasks), nil, rows, func() { list = list[:n] }, scanWatched(&list))
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// WatchNew returns up to limit tasks after an id, in the order of their ids.
func (s *Store) WatchNew(ctx context.Context, after int64, limit int) (list []Watched, err error) {
	values := statements.Values{"after": after, "limit": limit}
	err = s.read(ctx, s.fixed("watch new", statements.WatchNew), values, func() { list = nil }, scanWatched(&list))
	return list, err
}

// WatchLane returns up to limit tasks of a lane whose anchors are at most back old.
func (s *Store) WatchLane(ctx context.Context, queue string, at Lane, back time.Duration, limit int) (list []Watched, err error) {
	values := statements.Values{"queue": queue, "back": back.Microseconds(), "limit": limit}
	statements.SetLane(values, at)
	err = s.read(ctx, s.fixed("watch lane", statements.WatchLane), values, func() { list = nil }, scanWatched(&list))
	return list, err
}

// scanWatched adds rows to a list, except for rows with values that falldue never writes.
func scanWatched(list *[]Watched) func(row) error {
	return func(r row) error {
		var w Watched
		if statements.WatchedColumns.Scan(r, &w) == nil {
			*list = append(*list, w)
		}
		return nil
	}
}

// EndsOfLanes returns the tasks at one end of each lane: up to limit, those with the latest anchors or, without newest,
// with the earliest.
func (s *Store) EndsOfLanes(ctx context.Context, lanes []statements.QueueLane, newest bool, limit int) ([][]Watched, error) {
	name := "oldest in lanes"
	if newest {
		name = "newest in lanes"
	}
	lists := make([][]Watched, len(lanes))
	err := united(ctx, s, name, statements.QueueLaneColumns, lanes, statements.Values{"limit": limit}, func(server dialect.Server, tables dialect.Tables, size int) statements.Stmt {
		return statements.EndsOfLanes(server, tables, newest, size)
	}, func(i int) { lists[i] = nil }, func(i int, r row) error { return scanWatched(&lists[i])(r) })
	return lists, err
}
