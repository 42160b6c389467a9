package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// Change is what somebody has asked of all workers.
	Change = statements.Change
	// StoredChange is a change as it is stored.
	StoredChange = statements.StoredChange
)

// AllChanges, passed to [Store.Changes], stands for the time since the first change.
const AllChanges = 50 * 365 * 24 * time.Hour

// PutChange stores a change.
func (s *Store) PutChange(ctx context.Context, c Change) error {
	_, err := once(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.putChange(ctx, x, c) })
	return err
}

func (s *Store) putChange(ctx context.Context, x runner, c Change) error {
	values := statements.Values{}
	statements.ChangeColumns.Set(values, &c)
	_, err := x.exec(ctx, s.fixed("put change", statements.PutChange), values, nil)
	return err
}

// Changes returns the changes of the last back, oldest first.
func (s *Store) Changes(ctx context.Context, back time.Duration) (list []StoredChange, err error) {
	err = s.read(ctx, s.fixed("read changes", statements.ReadChanges), statements.Values{"back": back.Microseconds()}, func() { list = list[:0] }, func(r row) error {
		var c StoredChange
		err := statements.StoredChangeColumns.Scan(r, &c)
		list = append(list, c)
		return err
	})
	return list, err
}

// DropCancels deletes the cancels that are older than age.
func (s *Store) DropCancels(ctx context.Context, age time.Duration) error {
	_, err := once(ctx, s, func(x runner) (struct{}, error) {
		_, err := x.exec(ctx, s.fixed("drop cancels", statements.DropCancels), statements.Values{"age": age.Microseconds()}, nil)
		return struct{}{}, err
	})
	return err
}

// TaskSubject begins the subject of a change of a task. Its id follows.
const TaskSubject = "task:"
