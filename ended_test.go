package falldue

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/worker"
)

// TestEndedRunsAreCounted: those that succeeded, also by DoneTx, and those that failed.
func TestEndedRunsAreCounted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := New(db, Config{PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := NewKind[string]("k", KindConfig{})
		Handle(q, kind, func(ctx context.Context, task Task[string]) error {
			switch task.Args {
			case "fails":
				return errors.New("no")
			case "dies":
				return Discard(errors.New("never"))
			case "snoozes":
				return Snooze(time.Hour)
			case "in a transaction":
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := task.DoneTx(ctx, tx); err != nil {
					return err
				}
				return tx.Commit()
			}
			return nil
		})
		if _, err := kind.EnqueueMany(t.Context(), q, []string{"fails", "dies", "snoozes", "in a transaction", "succeeds", "succeeds"}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		var w *worker.Worker
		for ended := false; !ended; {
			counts, err := q.store.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var open, others int64
			for _, c := range counts {
				if c.State == statements.StateOpen {
					open += c.Tasks
				} else {
					others += c.Tasks
				}
			}
			ended = open == 1 && others == 2 // it waits for its retry, and the others are dead and snoozed
			if q.mu.Lock(); q.worker != nil {
				w = q.worker
			}
			q.mu.Unlock()
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, want := w.EndedRuns(), (store.Runs{Done: 3, Failed: 2}); got != want {
			t.Errorf("the runs that have ended are %+v, want %+v", got, want)
		}
	})
}
