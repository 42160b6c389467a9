package many

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/run"
)

// bench runs tasks with a gatherer in a bubble of synctest, and records its batches and the errors of tasks.
type bench struct {
	*gatherer[int]
	mu      sync.Mutex
	batches [][]int // the arguments of the tasks
	errs    map[int]error
}

// newBench returns a bench whose function is fn.
func newBench(cfg Config[int], fn func(ctx context.Context, b *Batch[int]) error) *bench {
	r := &bench{errs: map[int]error{}}
	r.gatherer = &gatherer[int]{Config: cfg, open: map[string]*batch[int]{}, fn: func(ctx context.Context, b *Batch[int]) error {
		var args []int
		for _, t := range b.Tasks {
			args = append(args, t.Args)
		}
		r.mu.Lock()
		r.batches = append(r.batches, args)
		r.mu.Unlock()
		return fn(ctx, b)
	}}
	return r
}

// begin begins the run of a task, and waits until it waits.
func (r *bench) begin(ctx context.Context, args ...int) {
	for _, arg := range args {
		go func() {
			err := errors.New("the handler has not returned")
			defer func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.errs[arg] = err
			}()
			err = r.handle(ctx, falldue.Task[int]{RunInfo: falldue.RunInfo{ID: int64(arg)}, Args: arg})
		}()
		synctest.Wait()
	}
}

// check compares the batches that have begun, such as "[1 2] [3]", and the number of runs that have ended.
func (r *bench) check(t *testing.T, when, batches string, ended int) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Trim(fmt.Sprint(r.batches), "[]"); got != strings.Trim(batches, "[]") || len(r.errs) != ended {
		t.Errorf("%s: the batches are [%s] and %d runs have ended, want %s and %d", when, got, len(r.errs), batches, ended)
	}
}

func succeeds(context.Context, *Batch[int]) error { return nil }

// TestABatchWaitsForMoreTasks: until it is full, or its first task has waited for long enough.
func TestABatchWaitsForMoreTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newBench(Config[int]{Most: 3, Wait: time.Second}, succeeds)
		r.begin(t.Context(), 1, 2)
		time.Sleep(time.Second - 1)
		r.check(t, "before the end of the wait", "[]", 0)
		r.begin(t.Context(), 3)
		r.check(t, "with a full batch", "[1 2 3]", 3)
		r.begin(t.Context(), 4)
		time.Sleep(time.Second / 2)
		r.begin(t.Context(), 5)
		time.Sleep(time.Second/2 - 1)
		r.check(t, "while the second batch waits", "[1 2 3]", 3)
		time.Sleep(time.Nanosecond)
		r.check(t, "after its wait", "[1 2 3] [4 5]", 5)
		r.begin(run.WithGathering(t.Context(), run.Gathering{None: true}), 6)
		r.check(t, "with a worker that runs one task at a time", "[1 2 3] [4 5] [6]", 6)
	})
}

// TestTasksOfAGroupAreTogether: a batch has the tasks of one group.
func TestTasksOfAGroupAreTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		even := func(t falldue.Task[int]) string { return fmt.Sprint(t.Args%2 == 0) }
		r := newBench(Config[int]{Most: 2, Wait: time.Second, GroupBy: even}, succeeds)
		r.begin(t.Context(), 1, 2, 4, 3, 5)
		r.check(t, "with two full groups", "[2 4] [1 3]", 4)
		time.Sleep(time.Second)
		r.check(t, "after the wait", "[2 4] [1 3] [5]", 5)
	})
}

// TestEachTaskHasItsOwnError: from Errs, or else from the function, which may panic or end its goroutine.
func TestEachTaskHasItsOwnError(t *testing.T) {
	t.Parallel()
	bad, all := errors.New("bad"), errors.New("all")
	for name, c := range map[string]struct {
		fn   func(b *Batch[int]) error
		want func(err error) bool // of all tasks but the second
	}{
		"nil":          {func(*Batch[int]) error { return nil }, func(err error) bool { return err == nil }},
		"an error":     {func(*Batch[int]) error { return all }, func(err error) bool { return errors.Is(err, all) }},
		"other errors": {func(b *Batch[int]) error { b.Errs = []error{nil, bad}; return nil }, func(err error) bool { return err == nil }},
		"a panic": {func(*Batch[int]) error { panic(all) }, func(err error) bool {
			p, ok := errors.AsType[*falldue.PanicError](err)
			return ok && fmt.Sprint(p.Value) == "all" && strings.Contains(p.Stack, "gatherer_test.go")
		}},
		"Goexit": {func(*Batch[int]) error { runtime.Goexit(); return nil }, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newBench(Config[int]{Most: 3, Wait: time.Second}, func(_ context.Context, b *Batch[int]) error {
					b.Errs[1] = bad
					return c.fn(b)
				})
				r.begin(t.Context(), 0, 1, 2)
				r.check(t, "after the batch", "[0 1 2]", 3)
				if !c.want(r.errs[0]) || !errors.Is(r.errs[1], bad) || !c.want(r.errs[2]) {
					t.Errorf("the errors are %v", r.errs)
				}
			})
		})
	}
}

// TestTasksLeaveABatchThatWaits: when their contexts have ended, or their worker stops. A batch without tasks does not run.
func TestTasksLeaveABatchThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newBench(Config[int]{Most: 3, Wait: time.Second}, succeeds)
		ctx, cancel := context.WithCancelCause(t.Context())
		r.begin(ctx, 1)
		r.begin(t.Context(), 2)
		cancel(falldue.ErrCancelled)
		r.check(t, "after one is cancelled", "[]", 1)
		time.Sleep(time.Second)
		r.check(t, "after the wait", "[2]", 2)
		stop := make(chan struct{})
		r.begin(run.WithGathering(t.Context(), run.Gathering{Stop: stop}), 3, 4)
		close(stop)
		r.check(t, "after the worker stops", "[2]", 4)
		time.Sleep(time.Second)
		r.check(t, "later", "[2]", 4)
		if !errors.Is(r.errs[1], falldue.ErrCancelled) || r.errs[2] != nil || !errors.Is(r.errs[3], falldue.ErrStopping) || !errors.Is(r.errs[4], falldue.ErrStopping) {
			t.Errorf("the errors are %v", r.errs)
		}
		if len(r.open) != 0 {
			t.Errorf("%d batches still wait", len(r.open))
		}
	})
}

// TestTheContextEndsWithTheLastTask: a batch that runs continues while one of its tasks can, even if the worker stops.
func TestTheContextEndsWithTheLastTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var of []context.Context // of the tasks
		ended := make(chan error, 1)
		r := newBench(Config[int]{Most: 2, Wait: time.Second}, func(ctx context.Context, b *Batch[int]) error {
			of = append(of, b.Context(0), b.Context(1))
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
		stop := make(chan struct{})
		base := run.WithGathering(t.Context(), run.Gathering{Stop: stop})
		first, cancelFirst := context.WithCancelCause(base)
		second, cancelSecond := context.WithCancelCause(base)
		r.begin(first, 1)
		r.begin(second, 2)
		close(stop)
		cancelFirst(falldue.ErrCancelled)
		r.check(t, "after one of two has ended", "[1 2]", 0)
		if of[0].Err() == nil || of[1].Err() != nil || len(ended) != 0 {
			t.Errorf("the contexts of the tasks are %v and %v, and the function's has ended: %v", of[0].Err(), of[1].Err(), len(ended) > 0)
		}
		cancelSecond(falldue.ErrStopping)
		r.check(t, "after both have ended", "[1 2]", 2)
		if cause := <-ended; !errors.Is(cause, falldue.ErrStopping) {
			t.Errorf("the context has ended with %v", cause)
		}
	})
}

// TestBatchesByHand: a function can be tested without a queue.
func TestBatchesByHand(t *testing.T) {
	t.Parallel()
	b := NewBatch(falldue.Task[int]{Args: 1}, falldue.Task[int]{Args: 2})
	if !slices.Equal(b.Errs, []error{nil, nil}) || b.Context(1).Err() != nil {
		t.Errorf("a batch is %+v", b)
	}
}
