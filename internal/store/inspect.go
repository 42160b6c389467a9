package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// Filter selects tasks. Fields that are zero match all tasks.
type Filter struct {
	Queue, Kind, Key string
	State            string
	Older, Newer     time.Duration // enqueued at least, or less than, so long ago
	Phase            statements.Phase
	After            int64 // only greater ids match
	Upto             int64 // and no greater ones than this
	Brief            bool  // without payloads, results, metadata and errors
	Newest           bool  // from the greatest id down: only ids below After match, and none below Upto
	Near             bool  // Upto is not far from After
	Limit            int
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

// Tasks lists the tasks that match a filter, in the order of their ids, or from the greatest down
// if it has Newest.
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
	values := keyValues(f.Key)
	maps.Copy(values, statements.Values{
		"queue": f.Queue, "kind": f.Kind, "state": f.State, "older": f.Older.Microseconds(), "newer": f.Newer.Microseconds(),
		"after": f.After, "upto": f.Upto, "limit": f.Limit,
	})
	return statements.ListParams{
		Queue: f.Queue != "", Kind: f.Kind != "", State: f.State != "", Key: f.Key != "", Part: storable.HasParts(f.Key),
		Older: f.Older != 0, Newer: f.Newer != 0, Upto: f.Upto != 0, Phase: f.Phase, Brief: f.Brief, Newest: f.Newest, Near: f.Near,
	}, values
}

// keyValues are the parameters of a condition on a key.
func keyValues(key string) statements.Values {
	// "0" comes right after "/", which is between two parts.
	return statements.Values{"key": key, "key_end": key + "0", "part_first": key + "/", "part_within": "/" + key + "/", "part_last": "/" + key}
}

// Span counts the tasks that match a filter, up to its Limit, and returns the id of the last
// counted one.
func (s *Store) Span(ctx context.Context, f Filter) (n int, last int64, err error) {
	p, values := f.params()
	stmt := s.stmt(stmtKey{name: "span", filter: p}, func() statements.Stmt { return statements.Span(s.server, s.tables, p) })
	err = s.read(ctx, stmt, values, func() {}, func(r row) error {
		count, err := r.int(0)
		if err != nil {
			return err
		}
		n = int(count)
		last, err = r.int(1)
		return err
	})
	return n, last, err
}

// IDs lists the ids of up to limit tasks of the filter's queue and state, in no order.
func (s *Store) IDs(ctx context.Context, f Filter, limit int) (ids []int64, err error) {
	f.Limit = limit
	p, values := f.params()
	stmt := s.stmt(stmtKey{name: "list ids", filter: p}, func() statements.Stmt { return statements.ListIDs(s.server, s.tables, p) })
	err = s.read(ctx, stmt, values, func() { ids = nil }, func(r row) error {
		id, err := r.int(0)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// LookIDs reads up to limit tasks of the filter's queue and state, and of its key, or of the keys that begin with its
// parts. It returns the ids of those that match the filter, in no order, and how many tasks it has read.
func (s *Store) LookIDs(ctx context.Context, f Filter, limit int) (ids []int64, read int, err error) {
	f.Limit = limit
	p, values := f.params()
	stmt := s.stmt(stmtKey{name: "look ids", filter: p}, func() statements.Stmt { return statements.LookIDs(s.server, s.tables, p) })
	err = s.read(ctx, stmt, values, func() { ids, read = nil, 0 }, func(r row) error {
		id, err := r.int(0)
		if read++; id != 0 {
			ids = append(ids, id)
		}
		return err
	})
	return ids, read, err
}

// TasksOf lists the tasks with some ids, up to MaxBatch, that match a filter, in the filter's order.
func (s *Store) TasksOf(ctx context.Context, f Filter, ids []int64) (list []Task, err error) {
	p, values := f.params()
	size := s.size(len(ids))
	stmt := s.stmt(stmtKey{name: "list some", size: size, filter: p}, func() statements.Stmt { return statements.ListSome(s.server, s.tables, p, size) })
	rows := statements.IDColumns.Rows(len(ids), func(i int) *Key { return &Key{TaskID: ids[i]} })
	err = s.readRows(ctx, stmt, values, rows, func() { list = list[:0] }, scanTasks(&list))
	slices.SortFunc(list, func(a, b Task) int {
		if f.Newest {
			a, b = b, a
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return list, err
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

// AttemptsOf lists the recorded attempts of each of some tasks, in no order.
func (s *Store) AttemptsOf(ctx context.Context, ids []int64) ([][]Attempt, error) {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i].TaskID = id
	}
	lists := make([][]Attempt, len(ids))
	err := united(ctx, s, "attempts of", statements.IDColumns, keys, nil, statements.AttemptsOf, func(i int) { lists[i] = nil }, func(i int, r row) error {
		var a Attempt
		err := statements.AttemptColumns.Scan(r, &a)
		lists[i] = append(lists[i], a)
		return err
	})
	return lists, err
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
