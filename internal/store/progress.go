package store

import (
	"context"
	"slices"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

type (
	// Progress is how far a run has come.
	Progress = statements.Progress
	// Reported is the progress of a task as it is stored.
	Reported = statements.Reported
)

// WriteProgress stores the progress of claims that worker holds, and returns the ids of
// their tasks. It leaves out claims that worker has lost, and claims whose rows another
// transaction has locked. A task must not occur twice. WriteProgress locks the rows of the
// tasks, so that no task ends before its progress is stored.
func (s *Store) WriteProgress(ctx context.Context, worker string, list []Progress) (stored map[int64]bool, err error) {
	stored, err = s.writeProgress(ctx, worker, list)
	if s.server.Classify(err) == dialect.Unencodable {
		plain := slices.Clone(list)
		for i := range plain {
			plain[i].Message = storable.ASCII(plain[i].Message)
		}
		return s.writeProgress(ctx, worker, plain)
	}
	return stored, err
}

func (s *Store) writeProgress(ctx context.Context, worker string, list []Progress) (stored map[int64]bool, err error) {
	fences := statements.FenceColumns.Rows(len(list), func(i int) *Key { return &list[i].Key })
	return inTx(ctx, s, func(x runner) (map[int64]bool, error) {
		held, err := s.owned(ctx, x, worker, fences, true)
		if err != nil {
			return nil, err
		}
		var live []Progress
		for _, p := range list {
			if held[p.TaskID] {
				live = append(live, p)
			}
		}
		return held, s.putProgress(ctx, x, live)
	})
}

func (s *Store) putProgress(ctx context.Context, x runner, list []Progress) error {
	return inBatchesOf(s, statements.ProgressColumns, list, func(batch []Progress) error {
		rows := statements.ProgressColumns.Rows(len(batch), func(i int) *Progress { return &batch[i] })
		_, err := x.exec(ctx, s.batch("put progress", len(batch), statements.PutProgress), nil, rows)
		return err
	})
}

func (s *Store) dropProgress(ctx context.Context, x runner, gone []Key) error {
	rows := statements.IDColumns.Rows(len(gone), func(i int) *Key { return &gone[i] })
	_, err := x.exec(ctx, s.batch("drop progress", len(gone), statements.DropProgress), nil, rows)
	return err
}

// Progress returns the progress of a task, and false if none is stored.
func (s *Store) Progress(ctx context.Context, id int64) (p Reported, ok bool, err error) {
	err = s.read(ctx, s.fixed("read progress", statements.ReadProgress), statements.Values{"id": id}, func() { ok = false }, func(r row) error {
		ok = true
		return statements.ReportedColumns.Scan(r, &p)
	})
	return p, ok, err
}

// DropOrphanedProgress drops the progress of tasks that are gone. A task leaves its progress
// behind if another run deletes the task, or if the task's retention expires.
func (s *Store) DropOrphanedProgress(ctx context.Context) error {
	for {
		orphans, err := reading(ctx, s, func(x runner) ([]int64, error) {
			return int64s(ctx, x, s.fixed("orphaned progress", statements.OrphanedProgress), statements.Values{"limit": MaxBatch}, nil)
		})
		if err != nil || len(orphans) == 0 {
			return err
		}
		gone := make([]Key, len(orphans))
		for i, id := range orphans {
			gone[i].TaskID = id
		}
		if _, err := inTx(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.dropProgress(ctx, x, gone) }); err != nil {
			return err
		}
	}
}

// progressLog is the participant that stores the last reports of runs, and drops the
// progress of deleted tasks.
type progressLog struct{ s *Store }

func (l progressLog) joins(e *Settlement) bool { return e.Progress != nil || e.HasProgress }

func (l progressLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	var last []Progress
	var gone []Key
	for _, e := range batch {
		if e.deletes() {
			gone = append(gone, e.Key)
		} else if e.Progress != nil {
			last = append(last, *e.Progress)
		}
	}
	if err := l.s.putProgress(ctx, x, last); err != nil || len(gone) == 0 {
		return err
	}
	return l.s.dropProgress(ctx, x, gone)
}
