// Package signalstest runs tasks that end in every way, for the tests of package signals and of the
// modules that export its metrics.
package signalstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// BankError is the error of tasks that fail.
type BankError struct{}

func (*BankError) Error() string { return "the bank is closed" }

// Kind is the kind of the tasks. Their arguments are a word of [Outcomes].
var Kind = falldue.NewKind[string]("pay", falldue.KindConfig{Policy: backoff.ParseDeferred("delay 1h; attempts 5"), Timeout: time.Minute})

// Outcomes has, by the arguments of a task, what its run ends with, as middleware and the event have it.
var Outcomes = map[string]struct{ Predicted, Written falldue.Outcome }{
	"done":          {falldue.OutcomeDone, falldue.OutcomeDone},
	"retried":       {falldue.OutcomeRetried, falldue.OutcomeRetried},
	"panics":        {falldue.OutcomeRetried, falldue.OutcomeRetried},
	"dead":          {falldue.OutcomeDead, falldue.OutcomeDead},
	"discarded":     {falldue.OutcomeDiscarded, falldue.OutcomeDiscarded},
	"snoozed":       {falldue.OutcomeSnoozed, falldue.OutcomeSnoozed},
	"repeated":      {falldue.OutcomeRepeated, falldue.OutcomeRepeated},
	"retried_after": {falldue.OutcomeRetriedAfter, falldue.OutcomeRetriedAfter},
	"cancelled":     {falldue.OutcomeCancelled, falldue.OutcomeCancelled},
	"lost":          {falldue.OutcomeDone, falldue.OutcomeLost},
}

// Queue returns a queue with tables, which handles Kind.
func Queue(t testing.TB, engine string, cfg falldue.Config) (*falldue.Queue, *sqlx.DB) {
	t.Helper()
	db := testdb.Open(t, engine)
	q, err := falldue.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	falldue.Handle(q, Kind, func(ctx context.Context, task falldue.Task[string]) error {
		failure := error(&BankError{})
		switch task.Args {
		case "retried", "dead":
			return failure
		case "panics":
			panic("the till is jammed")
		case "discarded":
			return falldue.Discard(failure)
		case "snoozed":
			return falldue.Snooze(time.Hour)
		case "repeated":
			return falldue.Again(time.Hour)
		case "retried_after":
			return falldue.RetryAfter(time.Hour, failure)
		case "cancelled":
			if err := q.Cancel(context.WithoutCancel(ctx), task.ID); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		case "lost": // as if another worker had claimed it
			_, err := db.ExecContext(ctx, db.Rebind("update falldue_tasks set fence = fence + 1 where id = ?"), task.ID)
			return err
		}
		return nil
	})
	return q, db
}

// Enqueue enqueues a task.
func Enqueue(ctx context.Context, t testing.TB, q *falldue.Queue, args string) int64 {
	t.Helper()
	o := falldue.EnqueueOptions{}
	if args == "dead" {
		o.MaxAttempts = 1
	}
	receipt, err := Kind.Enqueue(ctx, q, args, o)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

// RunAll runs a task of each outcome.
func RunAll(t testing.TB, q *falldue.Queue) {
	t.Helper()
	for args := range Outcomes {
		Enqueue(t.Context(), t, q, args)
		ran := tasktest.RunOne(t, q)
		if wants := ran.Err != nil; wants != (args != "done" && args != "lost") && !errors.Is(ran.Err, falldue.ErrLeaseLost) {
			t.Errorf("%s: ran as %+v", args, ran)
		}
	}
}
