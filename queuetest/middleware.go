package queuetest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
)

// ending is what middleware and events say of a run.
type ending struct {
	attempt int
	outcome falldue.Outcome
}

// endings has the runs of tasks.
type endings struct {
	mu   sync.Mutex
	runs map[int64][]ending
}

func (e *endings) add(id int64, one ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs == nil {
		e.runs = map[int64][]ending{}
	}
	e.runs[id] = append(e.runs[id], one)
}

func (e *endings) of(id int64) []ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.runs[id])
}

// beginsFirst returns the begins of runs, and then their ends. A task that is due again at
// once may begin before the event of its end.
func beginsFirst(list []ending) []ending {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b ending) int {
		return cmp.Compare(min(len(a.outcome), 1), min(len(b.outcome), 1))
	})
	return sorted
}

// outcomeKind is a kind whose handler ends as its arguments say, and what its runs come to.
var outcomeKind = falldue.NewKind[string]("ending", falldue.KindConfig{DoneRetention: time.Hour})

var outcomes = map[string][]ending{
	"done":         {{1, falldue.OutcomeDone}},
	"fails":        {{1, falldue.OutcomeRetried}, {2, falldue.OutcomeRetried}, {3, falldue.OutcomeDead}},
	"panics":       {{1, falldue.OutcomeRetried}, {2, falldue.OutcomeDone}},
	"discards":     {{1, falldue.OutcomeDiscarded}},
	"snoozes":      {{1, falldue.OutcomeSnoozed}, {1, falldue.OutcomeDone}},
	"repeats":      {{1, falldue.OutcomeRepeated}, {1, falldue.OutcomeDone}},
	"later":        {{1, falldue.OutcomeRetriedAfter}, {2, falldue.OutcomeDone}},
	"settles":      {{1, falldue.OutcomeDone}},
	"is cancelled": {{1, falldue.OutcomeCancelled}},
}

// handleOutcomes registers the handler of outcomeKind.
func handleOutcomes(q *falldue.Queue, f *fixture, started chan<- int64) {
	falldue.Handle(q, outcomeKind, func(ctx context.Context, task falldue.Task[string]) error {
		switch again := task.Fence > 1; {
		case task.Args == "fails":
			return errFlaky
		case task.Args == "discards":
			return falldue.Discard(errFlaky)
		case task.Args == "panics" && !again:
			panic("no luck")
		case task.Args == "snoozes" && !again:
			return falldue.Snooze(0)
		case task.Args == "repeats" && !again:
			return falldue.Again(0)
		case task.Args == "later" && !again:
			return falldue.RetryAfter(0, errFlaky)
		case task.Args == "settles":
			// A serializable one may be refused, since other tasks are settled meanwhile.
			tx, err := f.begin(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := task.DoneTx(ctx, tx.Tx); err != nil {
				return err
			}
			return tx.Commit()
		case task.Args == "is cancelled":
			started <- task.ID
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
}

// runOutcomes enqueues a task for each outcome, and waits until all are finished.
func runOutcomes(t *testing.T, q *falldue.Queue, started <-chan int64, ended func(args string, id int64)) {
	t.Helper()
	ids, policy := map[string]int64{}, parsePolicy(t, "delay 0")
	for args := range outcomes {
		ids[args] = enqueue(t, q, outcomeKind, args, falldue.EnqueueOptions{MaxAttempts: 3, Policy: policy})
	}
	if err := q.Cancel(t.Context(), receive(t, started, "the task that is cancelled")); err != nil {
		t.Fatal(err)
	}
	for args, id := range ids {
		waitFor(t, q, id, "finished", func(i falldue.TaskInfo) bool { return i.State != falldue.StateOpen && i.State != falldue.StateSnoozed })
		ended(args, id)
	}
}

var middlewareCases = []conformanceCase{
	inCallersTx("middleware sees the facts of each run, and how it ends, as a value", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Concurrency: 20})
		var seen endings
		q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, run *falldue.Run) error {
				err := next(ctx, run)
				seen.add(run.ID, ending{run.Attempt, run.Outcome(err)})
				if run.Kind != "ending" || run.Queue != falldue.DefaultQueue || run.DueAt.Before(run.CreatedAt.Add(-time.Second)) || !run.ReadyAt.Equal(run.DueAt) || run.StartedAt.Before(run.ReadyAt) {
					t.Errorf("the run is %+v", run.RunInfo)
				}
				return err
			}
		})
		started := make(chan int64, 1)
		handleOutcomes(q, f, started)
		stop := startWorker(t, q)
		var finished []int64
		texts := map[int64]string{}
		runOutcomes(t, q, started, func(args string, id int64) { finished, texts[id] = append(finished, id), args })
		stop() // the run that was cancelled ends
		for _, id := range finished {
			if got := seen.of(id); !slices.Equal(got, outcomes[texts[id]]) {
				t.Errorf("%s: middleware has seen %v, want %v", texts[id], got, outcomes[texts[id]])
			}
		}
	}),
	{"the first middleware is outermost, and the panic of one is an error of those around it", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		steps := make(chan string, 100)
		step := func(name string, after func(error) error) falldue.Middleware {
			return func(next falldue.HandlerFunc) falldue.HandlerFunc {
				return func(ctx context.Context, run *falldue.Run) error {
					steps <- "begin " + name
					err := next(ctx, run)
					var p *falldue.PanicError
					if errors.As(err, &p) {
						steps <- fmt.Sprintf("%s sees the panic %v as %s, %t", name, p.Value, run.Outcome(err), strings.Contains(p.Stack, "middleware.go"))
						return after(err)
					}
					steps <- fmt.Sprintf("end %s: %v", name, err)
					return after(err)
				}
			}
		}
		same := func(err error) error { return err }
		k := falldue.NewKind[string]("wrapped", falldue.KindConfig{DoneRetention: time.Hour})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			steps <- "handle " + task.Args
			return errFlaky
		}, step("kind", func(error) error { panic("in middleware") }))
		q.Use(step("first", func(error) error { return nil })) // makes the task done
		q.Use(step("second", same))
		id := enqueue(t, q, k, "it")
		startWorker(t, q)
		waitForState(t, q, id, falldue.StateDone)
		close(steps)
		var got []string
		for s := range steps {
			got = append(got, s)
		}
		want := []string{
			"begin first", "begin second", "begin kind", "handle it", "end kind: " + errFlaky.Error(),
			"second sees the panic in middleware as retried, true", "first sees the panic in middleware as retried, true",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}},
	{"what middleware returns decides the outcome, and a panic of it fails the attempt", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[string]("decided", falldue.KindConfig{Policy: parsePolicy(t, "delay 0; attempts 1")})
		falldue.Handle(q, k, func(context.Context, falldue.Task[string]) error { return nil })
		q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, run *falldue.Run) error {
				switch run.Metadata["do"] {
				case "discard":
					return falldue.Discard(fmt.Errorf("refused: %w", errFlaky))
				case "panic":
					panic("outermost")
				}
				return next(ctx, run)
			}
		})
		startWorker(t, q)
		for do, want := range map[string]string{"discard": "refused: " + errFlaky.Error(), "panic": "panic: outermost"} {
			id := enqueue(t, q, k, "", falldue.EnqueueOptions{Metadata: map[string]string{"do": do}})
			if info := waitForState(t, q, id, falldue.StateDead); info.LastError != want {
				t.Errorf("%s: last error %q, want %q", do, info.LastError, want)
			}
		}
	}},
	inCallersTx("middleware can run the handler in a transaction and settle its task in it", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("in.tx", falldue.KindConfig{})
		q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, run *falldue.Run) error {
				return f.transact(ctx, func(tx falldue.Tx) error {
					if err := next(context.WithValue(ctx, txKey{}, tx), run); err != nil {
						return err
					}
					return run.DoneTx(ctx, tx)
				})
			}
		})
		after := falldue.NewKind[noteArgs]("after", falldue.KindConfig{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			_, err := after.EnqueueTx(ctx, q, ctx.Value(txKey{}).(falldue.Tx), task.Args)
			return err
		})
		id := enqueue(t, q, k, noteArgs{Text: "a"})
		startWorker(t, q)
		waitForState(t, q, id, falldue.StateDone)
		if list := tasksOf(t, q, "after"); len(list) != 1 {
			t.Errorf("the handler has enqueued %+v, want one task", list)
		}
	}),
}

// txKey is the key of a handler's transaction in its context.
type txKey struct{}

// transact runs fn in a transaction.
func (f *fixture) transact(ctx context.Context, fn func(falldue.Tx) error) error {
	tx, err := f.begin(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx.Tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
