package queuetest

import (
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

var flowTxCases = []conformanceCase{
	inCallersTx("a chain that is enqueued in a transaction runs in its order once that commits", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{}), newFlowRuns()
		runs.handle(q, flowKind, succeed)
		tx, err := f.begin(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := flow.Chain(stepTasks(0, 4)...).EnqueueTx(t.Context(), q, tx.Tx); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		for want := range 4 {
			if got := receive(t, runs.ran, "a run"); got != want {
				t.Errorf("%d ran as the %d-th", got, want)
			}
		}
	}),
	inCallersTx("the callback waits for a sibling that a handler enqueues in a transaction, if it commits", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{Concurrency: 1}), newFlowRuns()
		runs.handle(q, flowKind, func(task falldue.Task[int]) error {
			if task.Args != 0 {
				return nil
			}
			for _, commit := range []bool{false, true} {
				tx, err := f.begin(t.Context(), nil)
				if err != nil {
					return err
				}
				end := tx.Rollback
				if commit {
					end = tx.Commit
				}
				_, err = flow.AddSiblingTx(t.Context(), q, tx.Tx, task.ID, stepTasks(1, 3)...)
				if err := errors.Join(err, end()); err != nil {
					return err
				}
			}
			return nil
		})
		ids := enqueueFlow(t, q, flow.Batch(step(0)).Then(step(9)))
		startWorker(t, q)
		for range 5 {
			receive(t, runs.ran, "a run")
		}
		if last := runs.order[4]; last != 9 || len(runs.order) != 5 {
			t.Errorf("%v ran, want 5 with the callback as the last", runs.order)
		}
		tx := f.mustBegin(t)
		if _, err := flow.AddSiblingTx(t.Context(), q, tx.Tx, ids[0], step(1)); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("a sibling of a task that has ended: %v, want ErrNotFound", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}),
	inCallersTx("what runs after a task starts once the transaction has ended it that its handler began", func(t *testing.T, f *fixture) {
		q, runs := f.queue(t, falldue.Config{Concurrency: 1}), newFlowRuns()
		runs.handle(q, flowKind, func(task falldue.Task[int]) error {
			if task.Args == 2 {
				return nil
			}
			tx, err := f.begin(t.Context(), nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := task.DoneTx(t.Context(), tx.Tx); err != nil {
				return err
			}
			return tx.Commit()
		})
		enqueueFlow(t, q, flow.Batch(stepTasks(0, 2)...).Then(step(2)))
		startWorker(t, q)
		for range 3 {
			receive(t, runs.ran, "a run")
		}
		if last := runs.order[2]; last != 2 {
			t.Errorf("the last to run is %d, want the callback", last)
		}
	}),
}
