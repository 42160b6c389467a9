package systemtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestOutcomesOfDoneTx: a handler that calls DoneTx ends its task by the commit, whatever it returns
// after that, and in no other way.
func TestOutcomesOfDoneTx(t *testing.T) {
	t.Parallel()
	errAfter := errors.New("after the commit")
	const late = "a handler failed after its DoneTx had committed; the task is done"
	testdb.Each(t, func(t *testing.T, engine string) {
		for name, c := range map[string]struct {
			end     func(t *testing.T, q *falldue.Queue, id int64, tx *sqlx.Tx) error
			outcome falldue.Outcome
			err     error
			logs    string
		}{
			"it commits": {func(_ *testing.T, _ *falldue.Queue, _ int64, tx *sqlx.Tx) error { return tx.Commit() }, falldue.OutcomeDone, nil, ""},
			"it commits, and returns an error": {func(_ *testing.T, _ *falldue.Queue, _ int64, tx *sqlx.Tx) error {
				return errors.Join(tx.Commit(), errAfter)
			}, falldue.OutcomeDone, errAfter, late},
			"it rolls back": {func(_ *testing.T, _ *falldue.Queue, _ int64, tx *sqlx.Tx) error {
				return tx.Rollback()
			}, falldue.OutcomeDead, falldue.ErrNotCommitted, ""},
			"it rolls back, and its lease is extended after that": {func(t *testing.T, q *falldue.Queue, id int64, tx *sqlx.Tx) error {
				err := tx.Rollback()
				for range 2 { // the first one may have begun before the rollback
					before := info(t, q, id).UpdatedAt
					waitFor(t, "the lease to be extended", func() bool {
						i := info(t, q, id)
						return i.UpdatedAt.After(before) || i.State == falldue.StateDead
					})
				}
				return err
			}, falldue.OutcomeDead, falldue.ErrNotCommitted, ""},
		} {
			t.Run(name, func(t *testing.T) {
				var q *falldue.Queue
				var e falldue.Event
				var log *bytes.Buffer
				for range 5 { // a machine that stalls for longer than a lease loses it
					if q, e, log = endOfDoneTx(t, engine, c.end); info(t, q, e.ID).Fence == 1 && e.Outcome != falldue.OutcomeLost {
						break
					}
				}
				if e.Outcome != c.outcome || !errors.Is(e.Err, c.err) || (e.Err == nil) != (c.err == nil) {
					t.Errorf("the run has ended as %s with the error %v, want %s with %v", e.Outcome, e.Err, c.outcome, c.err)
				}
				if got := info(t, q, e.ID); string(got.State) != string(c.outcome) {
					t.Errorf("the task is %s, want %s", got.State, c.outcome)
				}
				if !strings.Contains(log.String(), c.logs) || c.logs == "" && strings.Contains(log.String(), late) {
					t.Errorf("the log has %q, want %q", log.String(), c.logs)
				}
			})
		}
	})
}

// endOfDoneTx runs a task on a database of its own. Its handler calls end after DoneTx. It returns the event of the task's
// end and the log.
func endOfDoneTx(t *testing.T, engine string, end func(t *testing.T, q *falldue.Queue, id int64, tx *sqlx.Tx) error) (*falldue.Queue, falldue.Event, *bytes.Buffer) {
	t.Helper()
	db := testdb.Open(t, engine)
	log := new(bytes.Buffer)
	q, err := falldue.New(db, falldue.Config{Lease: 3 * time.Second, DoneRetention: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil {
		err = q.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	k := falldue.NewKind[int]("k", falldue.KindConfig{})
	falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err == nil {
			err = task.DoneTx(ctx, tx)
		}
		if err != nil {
			t.Error(err)
			return err
		}
		return end(t, q, task.ID, tx)
	})
	ended := q.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{falldue.OutcomeDone, falldue.OutcomeDead, falldue.OutcomeRetried, falldue.OutcomeLost}})
	defer ended.Close()
	if _, err := k.Enqueue(t.Context(), q, 0, falldue.EnqueueOptions{MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- q.Run(ctx) }()
	e := <-ended.Events()
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	return q, e, log
}
