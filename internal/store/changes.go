package store

import (
	"context"
	"strconv"
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
	values := statements.Values{}
	statements.ChangeColumns.Set(values, &c)
	_, err := once(ctx, s, func(x runner) (struct{}, error) {
		_, err := x.exec(ctx, s.fixed("put change", statements.PutChange), values, nil)
		return struct{}{}, err
	})
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

// Cancel cancels a task that is not finished. If it is claimed, a change says so to its
// worker. The error wraps [ErrNotFound] if there is no such task.
func (s *Store) Cancel(ctx context.Context, id int64) error {
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		// From its first statement on, the row is locked.
		if err := s.changeStateIn(ctx, x, "cancel", statements.Cancel, id); err != nil {
			return struct{}{}, err
		}
		noted, err := x.exec(ctx, s.fixed("note cancel", statements.NoteCancel), statements.Values{
			"id": id, "subject": TaskSubject + strconv.FormatInt(id, 10), "who": "", "why": "",
		}, nil)
		if err != nil {
			return struct{}{}, err
		}
		if n, err := noted.RowsAffected(); err != nil || n == 0 {
			return struct{}{}, err
		}
		_, err = x.exec(ctx, s.fixed("end claim", statements.EndClaim), statements.Values{"id": id}, nil)
		return struct{}{}, err
	})
	return err
}
