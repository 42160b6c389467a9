package tasktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// open opens another pool on a database.
func open(t *testing.T, engine, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newQueue returns a queue whose tables have been made.
func newQueue(t *testing.T, db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

func enqueue[A any](t *testing.T, q *falldue.Queue, k falldue.Kind[A], args A, opts ...falldue.EnqueueOptions) int64 {
	t.Helper()
	receipt, err := k.Enqueue(t.Context(), q, args, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

// failing runs f with a test of its own, and returns what ended or failed that test.
func failing(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.text.String()
}

var errDown = errors.New("the service is down")

// TestADayOfRetries moves the clock by a day: each retry comes when its policy says, and nothing
// waits for it. With real waits the fourth attempt would come after more than two minutes.
func TestADayOfRetries(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		policy := backoff.ParseDeferred("delay 15s + n^4")
		kind := falldue.NewKind[string]("mail", falldue.KindConfig{Policy: policy})
		var at []time.Time
		begin, waits := time.Now(), time.Duration(0)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
			at = append(at, clock.Now(t))
			delay, _ := policy.Wait(int64(task.Attempt - 1))
			if waits += delay; time.Since(begin) > max(waits/2, time.Minute) {
				t.Fatalf("attempt %d came after %v of real time, want all of 24 hours in about a second", task.Attempt, time.Since(begin))
			}
			return errDown
		})
		id := enqueue(t, q, kind, "hello")
		start := clock.Now(t)
		ran := clock.Advance(t, q, 24*time.Hour)
		took := time.Since(begin)
		t.Logf("%d attempts in 24 hours took %v", len(ran), took)
		if moved := clock.Now(t).Sub(start); moved < 24*time.Hour || moved > 24*time.Hour+took+time.Minute {
			t.Errorf("the clock moved by %v", moved)
		}
		want, wait := 1, time.Duration(0)
		for {
			delay, _ := policy.Wait(int64(want))
			if wait += delay; wait > 24*time.Hour {
				break
			}
			want++
		}
		if len(ran) != want {
			t.Fatalf("%d attempts in 24 hours, want %d: %+v", len(ran), want, ran)
		}
		for i, r := range ran {
			if r.ID != id || r.Attempt != i+1 || r.State != falldue.StateOpen || !errors.Is(r.Err, errDown) {
				t.Errorf("run %d is %+v", i+1, r)
			}
			if delay, _ := policy.Wait(int64(i)); i > 0 {
				if waited := at[i].Sub(at[i-1]); waited < delay || waited > delay+took+time.Second {
					t.Errorf("attempt %d came %v after the one before, want %v", i+1, waited, delay)
				}
			}
		}
	})
}

// run runs a worker until the test ends.
func run(t *testing.T, q *falldue.Queue) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestAdvanceWaitsForRunningTasks: a lease does not end because the clock is moved.
func TestAdvanceWaitsForRunningTasks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		mine, others := open(t, engine, dsn), open(t, engine, dsn)
		clock := tasktest.NewClock(t, mine)
		q := newQueue(t, mine, falldue.Config{})
		tasktest.NewClock(t, others)
		worker := newQueue(t, others, falldue.Config{PollInterval: 10 * time.Millisecond})
		kind := falldue.NewKind[string]("slow", falldue.KindConfig{})
		started, release := make(chan int64, 10), make(chan struct{})
		falldue.Handle(worker, kind, func(_ context.Context, task falldue.Task[string]) error {
			started <- task.Fence
			<-release
			return nil
		})
		run(t, worker)
		enqueue(t, q, kind, "work")
		<-started
		text := failing(t, func(t testing.TB) { clock.Advance(t, q, time.Hour) })
		if !strings.Contains(text, `task 1 of kind "slow" on worker`) {
			t.Errorf("while a task ran, Advance failed with %q", text)
		}
		if ahead := time.Until(clock.Now(t)); ahead > time.Minute {
			t.Errorf("the clock was moved by %v while a task ran", ahead)
		}
		close(release)
		clock.Advance(t, q, time.Hour)
		if len(started) > 0 {
			t.Errorf("the task ran twice, the second time with the fence %d", <-started)
		}
		tasktest.RequireNoneEnqueued(t, q, kind)
	})
}

// TestJumpEndsLeases: a jump is as if the worker of a running task had died.
func TestJumpEndsLeases(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		kind := falldue.NewKind[string]("slow", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
		attempts := 0
		falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error {
			if attempts++; attempts == 1 {
				clock.Jump(t, 2*time.Hour)
				if ran := tasktest.RunOne(t, q); ran.Attempt != 2 || ran.State != falldue.StateDone {
					t.Errorf("meanwhile ran %+v", ran)
				}
			}
			return nil
		})
		enqueue(t, q, kind, "work")
		if ran := tasktest.RunOne(t, q); !errors.Is(ran.Err, falldue.ErrLeaseLost) || ran.State != "" {
			t.Errorf("the run whose lease ended is %+v", ran)
		}
	})
}

// TestExpireAtFollowsTheClock: a task that has not started by a time of the clock is cancelled.
func TestExpireAtFollowsTheClock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		kind := falldue.NewKind[string]("offer", falldue.KindConfig{})
		falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error { return nil })
		now := clock.Now(t)
		for _, hours := range []int{1, 3} {
			if _, err := kind.Enqueue(t.Context(), q, "", falldue.EnqueueOptions{ExpireAt: now.Add(time.Duration(hours) * time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		clock.Jump(t, 2*time.Hour)
		ran := tasktest.Drain(t, q)
		if len(ran) != 2 || ran[0].State != falldue.StateCancelled || ran[1].State != falldue.StateDone {
			t.Errorf("after two hours ran %+v; want one expired task, and one that is done", ran)
		}
	})
}

// TestTheClockEndsWithTheTest: queues that are made later use the database's clock.
func TestTheClockEndsWithTheTest(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		kind := falldue.NewKind[string]("mail", falldue.KindConfig{})
		t.Run("with a clock", func(t *testing.T) {
			clock := tasktest.NewClock(t, db)
			q := newQueue(t, db, falldue.Config{})
			clock.Advance(t, q, 1000*time.Hour)
			info, err := q.Task(t.Context(), enqueue(t, q, kind, ""))
			if err != nil || time.Until(info.CreatedAt) < 999*time.Hour {
				t.Errorf("a task of 1,000 hours later is %+v, %v", info, err)
			}
		})
		q := newQueue(t, db, falldue.Config{})
		info, err := q.Task(t.Context(), enqueue(t, q, kind, ""))
		if err != nil || time.Until(info.CreatedAt).Abs() > time.Hour {
			t.Errorf("a task of now is %+v, %v", info, err)
		}
	})
}

// TestAQueueBeforeTheClock: a queue that was made before the clock keeps the database's clock, and its tests end with
// that message.
func TestAQueueBeforeTheClock(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite)
	q := newQueue(t, db, falldue.Config{})
	if ran := tasktest.Drain(t, q); len(ran) > 0 {
		t.Errorf("Drain without a clock ran %+v", ran)
	}
	clock := tasktest.NewClock(t, db)
	for name, use := range map[string]func(testing.TB){
		"Advance": func(t testing.TB) { clock.Advance(t, q, time.Hour) },
		"Drain":   func(t testing.TB) { tasktest.Drain(t, q) },
		"RunOne":  func(t testing.TB) { tasktest.RunOne(t, q) },
	} {
		if text := failing(t, use); !strings.Contains(text, "made before NewClock") {
			t.Errorf("%s ends with %q", name, text)
		}
	}
	clock.Advance(t, newQueue(t, db, falldue.Config{}), time.Hour)
}
