package tasktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// TestRunOneRunsMiddleware: as a worker does, and the queue has the events of the run.
func TestRunOneRunsMiddleware(t *testing.T) {
	q := newQueue(t, testdb.Open(t, testdb.SQLite), falldue.Config{})
	k := falldue.NewKind[int]("wrapped", falldue.KindConfig{})
	falldue.Handle(q, k, func(context.Context, falldue.Task[int]) error { return errDown })
	var saw falldue.Outcome
	q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
		return func(ctx context.Context, run *falldue.Run) error {
			err := next(ctx, run)
			saw = run.Outcome(err)
			return falldue.Discard(err)
		}
	})
	s := q.Subscribe()
	enqueue(t, q, k, 1)
	if ran := tasktest.RunOne(t, q); ran.State != falldue.StateDead || !errors.Is(ran.Err, errDown) || saw != falldue.OutcomeRetried {
		t.Errorf("ran %+v, which middleware saw as %q", ran, saw)
	}
	s.Close()
	var outcomes []falldue.Outcome
	for e := range s.Events() {
		outcomes = append(outcomes, e.Outcome)
	}
	if !slices.Equal(outcomes, []falldue.Outcome{falldue.OutcomeNone, falldue.OutcomeDiscarded}) {
		t.Errorf("the events are %q", outcomes)
	}
}
