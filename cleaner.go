package falldue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// cleanEvery is how often a worker looks for finished tasks whose time is over.
const cleanEvery = time.Minute

// clean deletes finished tasks whose time is over, until ctx ends.
func (w *worker) clean(ctx context.Context) {
	for {
		for queue := range w.pollers {
			w.cleanState(ctx, queue, statements.StateDone, w.q.cfg.DoneRetention)
			if w.q.cfg.DeadRetention > 0 {
				w.cleanState(ctx, queue, statements.StateDead, w.q.cfg.DeadRetention)
				w.cleanState(ctx, queue, statements.StateCancelled, w.q.cfg.DeadRetention)
			}
		}
		every := cleanEvery
		if w.q.cfg.DoneRetention > 0 {
			every = min(every, max(w.q.cfg.DoneRetention, time.Second))
		}
		if pause(ctx, every+rand.N(every/10)) != nil {
			return
		}
	}
}

func (w *worker) cleanState(ctx context.Context, queue, state string, keep time.Duration) {
	for ctx.Err() == nil {
		n, err := w.cleanBatch(ctx, queue, state, keep)
		if err != nil && ctx.Err() == nil {
			w.q.cfg.Logger.Warn("falldue: cannot delete finished tasks", "queue", queue, "state", state, "error", err)
		}
		if err != nil || n < maxBatch {
			return
		}
	}
}

func (w *worker) cleanBatch(ctx context.Context, queue, state string, keep time.Duration) (n int, err error) {
	ctx, end := unhurried(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return w.q.store.clean(ctx, queue, state, keep)
}

// clean deletes up to a batch of finished tasks and what is recorded of them,
// and returns how many.
func (s *store) clean(ctx context.Context, queue, state string, keep time.Duration) (n int, err error) {
	find := s.stmt("clean", 0, func(int) statements.Stmt { return statements.Clean(s.server, s.tables) })
	args := find.Bind(statements.Values{"queue": queue, "state": state, "keep": keep.Microseconds(), "limit": maxBatch}, nil)
	err = s.inTx(ctx, func(x execer) error {
		ids, err := selectInt64s(ctx, x, find.SQL, args)
		if n = len(ids); err != nil || n == 0 {
			return err
		}
		rows := make([]statements.Row, n)
		for i, id := range ids {
			rows[i] = statements.Row{id}
		}
		drop := s.rowStmt("drop", n, statements.Drop)
		if _, err := x.exec(ctx, drop.SQL, drop.Bind(nil, rows)); err != nil {
			return err
		}
		forget := s.rowStmt("forget", n, statements.Forget)
		_, err = x.exec(ctx, forget.SQL, forget.Bind(nil, rows))
		return err
	})
	return n, err
}
