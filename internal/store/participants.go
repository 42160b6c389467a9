package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// participant joins the transaction of a settle, for the settlements that need
// it. A batch that no participant joins is settled by a single statement.
type participant interface {
	// joins reports whether a settlement needs the participant.
	joins(*Settlement) bool
	// settle runs in the transaction of the settle, after its statements, with
	// the settlements that took effect and that it joins.
	settle(ctx context.Context, x runner, batch []*Settlement) error
}

// join has participants join a settle, but for the settlements that were lost.
func (s *Store) join(ctx context.Context, x runner, batch []*Settlement, lost []int64) error {
	missed := setOf(lost)
	for _, p := range s.participants {
		var joined []*Settlement
		for _, e := range batch {
			if p.joins(e) && !missed[e.ID] {
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

// Outcome is what became of a recorded attempt.
type Outcome string

// The outcomes of recorded attempts.
const (
	Retried Outcome = "retried"
	Died    Outcome = "dead"
	Lost    Outcome = "lost"
)

// Record is what is kept of an attempt.
type Record struct {
	Fence    int64
	Attempt  int
	Outcome  Outcome
	Worker   string
	Duration time.Duration
	Err      string
	Stack    sql.Null[string]
}

// attemptLog records what went wrong in attempts, and forgets the attempts of
// tasks that are deleted.
type attemptLog struct{ s *Store }

func (l attemptLog) joins(e *Settlement) bool { return e.Records != nil || e.ForgetRecords }

func (l attemptLog) settle(ctx context.Context, x runner, batch []*Settlement) error {
	var records, gone []statements.Row
	for _, e := range batch {
		for _, r := range e.Records {
			records = append(records, statements.Row{
				e.ID, r.Fence, int64(r.Attempt), string(r.Outcome), r.Worker, r.Duration.Microseconds(), r.Err, nullable(r.Stack),
			})
		}
		if e.ForgetRecords && l.s.formOf(e) == byDelete {
			gone = append(gone, statements.Row{e.ID})
		}
	}
	err := inBatches(l.s, records, func(batch []statements.Row) error {
		_, err := x.exec(ctx, l.s.batch("record", len(batch), statements.Record), nil, batch)
		return err
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	_, err = x.exec(ctx, l.s.batch("forget", len(gone), statements.Forget), nil, gone)
	return err
}
