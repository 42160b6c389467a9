package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
)

// A participant takes part in the transaction of a settle, for the settlements that
// need it. A batch whose settlements need none may be settled by a single statement.
type participant interface {
	// joins reports whether a settlement needs the participant.
	joins(*Settlement) bool
	// settle runs in the transaction of the settle, after its statements. The batch
	// has the settlements that took effect and need the participant.
	settle(ctx context.Context, x runner, batch []*Settlement) error
}

// join runs the participants of a settle. They do not see settlements that were lost.
func (s *Store) join(ctx context.Context, x runner, batch []*Settlement, lost []int64) error {
	missed := SetOf(lost)
	for _, p := range s.participants {
		var joined []*Settlement
		for _, e := range batch {
			if p.joins(e) && !missed[e.TaskID] {
				joined = append(joined, e)
			}
		}
		if len(joined) == 0 {
			continue
		}
		if err := p.settle(ctx, x, joined); err != nil {
			return err
		}
	}
	return nil
}

// For each task, the first and the last recorded attempts are kept. The first ones show how the trouble began.
const firstRecords, lastRecords = 10, 40

// attemptLog is the participant that records failed and lost attempts, and deletes the
// records of tasks that are deleted.
type attemptLog struct{ s *Store }

func (l attemptLog) joins(e *Settlement) bool { return e.Records != nil || e.ForgetRecords }

func (l attemptLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	var records []Record
	var gone, old []Key
	for _, e := range batch {
		records = append(records, e.Records...)
		if e.Records != nil && e.Fence > firstRecords+lastRecords {
			old = append(old, e.Key)
		}
		if e.ForgetRecords && e.deletes() {
			gone = append(gone, e.Key)
		}
	}
	err := inBatchesOf(l.s, statements.RecordColumns, records, func(batch []Record) error {
		rows := statements.RecordColumns.Rows(len(batch), func(i int) *Record { return &batch[i] })
		_, err := x.exec(ctx, l.s.batch("record", len(batch), statements.Record), nil, rows)
		return err
	})
	if err == nil && len(old) > 0 {
		err = l.trim(ctx, x, old)
	}
	if err != nil || len(gone) == 0 {
		return err
	}
	rows := statements.IDColumns.Rows(len(gone), func(i int) *Key { return &gone[i] })
	_, err = x.exec(ctx, l.s.batch("forget", len(gone), statements.Forget), nil, rows)
	return err
}

// trim deletes the recorded attempts of tasks between the first and the last ones.
func (l attemptLog) trim(ctx context.Context, x runner, tasks []Key) error {
	var middle []Key
	rows := statements.IDColumns.Rows(len(tasks), func(i int) *Key { return &tasks[i] })
	values := statements.Values{"first": firstRecords, "last": lastRecords}
	err := x.query(ctx, l.s.batch("middle attempts", len(tasks), statements.Middle), values, rows, func(r row) error {
		middle = append(middle, Key{})
		return statements.FenceColumns.Scan(r, &middle[len(middle)-1])
	})
	if err != nil {
		return err
	}
	return inBatches(l.s, middle, func(batch []Key) error {
		rows := statements.FenceColumns.Rows(len(batch), func(i int) *Key { return &batch[i] })
		_, err := x.exec(ctx, l.s.batch("forget middle attempts", len(batch), statements.ForgetMiddle), nil, rows)
		return err
	})
}
