package tasktest_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// seen is what a program sees of the run of a task.
type seen struct {
	began   bool
	outcome falldue.Outcome
	err     error
	next    time.Duration
	claimed []falldue.StatementStats // that got a task
	settled []falldue.StatementStats
	swept   bool
}

// watcher records what the hooks of a queue are called with.
type watcher struct {
	mu sync.Mutex
	seen
	ended chan struct{}
}

func (w *watcher) hooks() falldue.Hooks {
	return falldue.Hooks{
		Event: func(e falldue.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if e.Outcome == falldue.OutcomeNone {
				w.began = true
				return
			}
			w.outcome, w.err, w.next = e.Outcome, e.Err, e.Next
			close(w.ended)
		},
		Sweep: func(falldue.StatementStats) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.swept = true
		},
		Claim: func(c falldue.StatementStats) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if c.Tasks > 0 {
				c.Took, c.Wanted = 0, 0 // a worker has room for more
				w.claimed = append(w.claimed, c)
			}
		},
		Settle: func(s falldue.StatementStats) {
			w.mu.Lock()
			defer w.mu.Unlock()
			s.Took = 0
			w.settled = append(w.settled, s)
		},
	}
}

// runs are handlers, and what RunOne says of their tasks.
var runs = map[string]struct {
	handle func(ctx context.Context, q *falldue.Queue, id int64) error
	state  falldue.State
	err    error
	next   time.Duration
}{
	"succeeds":     {func(context.Context, *falldue.Queue, int64) error { return nil }, falldue.StateDone, nil, 0},
	"fails":        {func(context.Context, *falldue.Queue, int64) error { return errDown }, falldue.StateOpen, errDown, time.Hour},
	"snoozes":      {func(context.Context, *falldue.Queue, int64) error { return falldue.Snooze(time.Minute) }, falldue.StateSnoozed, nil, time.Minute},
	"is discarded": {func(context.Context, *falldue.Queue, int64) error { return falldue.Discard(errDown) }, falldue.StateDead, errDown, 0},
	"is cancelled": {func(ctx context.Context, q *falldue.Queue, id int64) error {
		if err := q.Cancel(context.WithoutCancel(ctx), id); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(testdb.Patience):
			return errors.New("the context of a task that is cancelled has not ended")
		}
	}, falldue.StateCancelled, falldue.ErrCancelled, 0},
	"is cancelled at its end": {func(ctx context.Context, q *falldue.Queue, id int64) error {
		return q.Cancel(context.WithoutCancel(ctx), id)
	}, falldue.StateCancelled, falldue.ErrCancelled, 0},
}

// TestRunOneIsLikeAWorker: the hooks of a queue see the same of a task that a worker runs and of
// one that RunOne runs.
func TestRunOneIsLikeAWorker(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for name, c := range runs {
			kind := falldue.NewKind[int]("mail", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
			see := func(execute func(q *falldue.Queue, ended <-chan struct{})) seen {
				w := &watcher{ended: make(chan struct{})}
				q := newQueue(t, testdb.Open(t, engine), falldue.Config{Hooks: w.hooks()})
				falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error { return c.handle(ctx, q, task.ID) })
				enqueue(t, q, kind, 1)
				execute(q, w.ended)
				return w.seen
			}
			worker := see(func(q *falldue.Queue, ended <-chan struct{}) {
				ctx, stop := context.WithCancel(t.Context())
				stopped := make(chan error, 1)
				go func() { stopped <- q.Run(ctx) }()
				<-ended
				stop()
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
			one := see(func(q *falldue.Queue, _ <-chan struct{}) {
				if ran := tasktest.RunOne(t, q); ran.State != c.state || c.err != nil && !errors.Is(ran.Err, c.err) {
					t.Errorf("a task that %s: %+v; want state %q and error %v", name, ran, c.state, c.err)
				}
			})
			if (one.err == nil) != (worker.err == nil) || one.err != nil && one.err.Error() != worker.err.Error() {
				t.Errorf("of a task that %s the event has the error %v, that of a worker %v", name, one.err, worker.err)
			}
			if c.state == falldue.StateCancelled { // before it is settled, or meanwhile
				one.settled, worker.settled = nil, nil
			}
			if one.err, worker.err = nil, nil; !reflect.DeepEqual(one, worker) || one.next != c.next {
				t.Errorf("of a task that %s the hooks see\n%+v, of one that a worker runs\n%+v", name, one, worker)
			}
		}
	})
}
