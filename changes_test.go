package falldue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// changesTable is a table of changes for tests with a clock of their own.
type changesTable struct {
	mu    sync.Mutex
	list  []store.StoredChange
	reads int
	err   error
}

func (c *changesTable) add(subject, what, value string, created, ends time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := store.StoredChange{ID: int64(len(c.list) + 1), Created: created.UnixMicro()}
	one.Subject, one.What, one.Value = subject, what, value
	if !ends.IsZero() {
		one.Ends = ends.UnixMicro()
	}
	c.list = append(c.list, one)
}

func (c *changesTable) read(_ context.Context, back time.Duration) (list []store.StoredChange, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	now := time.Now()
	for _, one := range c.list {
		if now.Sub(store.Time(one.Created)) < back {
			one.Now = now.UnixMicro()
			list = append(list, one)
		}
	}
	return list, c.err
}

// count returns how often the changes were read.
func (c *changesTable) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// TestChangesAreReadEverySecond: a worker obeys within two seconds, also what was committed
// late, runs at most 65 statements a minute for it, and resumes when a pause ends by itself.
func TestChangesAreReadEverySecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, resumed := &changesTable{}, 0
		var cancelled map[int64]int64
		r := newChangeReader(nil, events{slog.New(slog.DiscardHandler)})
		r.changes, r.resumed, r.cancel = table.read, func() { resumed++ }, func(fences map[int64]int64) { cancelled = fences }
		ctx, cancel := context.WithCancel(t.Context())
		go r.work(ctx)
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		at := store.Lane{Kind: "charge", Key: "seven"}

		after(time.Hour)
		if perMinute := table.reads / 60; perMinute > 65 || perMinute < 50 {
			t.Errorf("%d reads a minute", perMinute)
		}
		begin := time.Now()
		table.add("queue:default kind:charge", statements.ChangePause, "", begin, time.Time{})
		after(2 * time.Second)
		if !r.paused("default", at) || r.paused("other", at) || r.paused("default", store.Lane{Kind: "other"}) {
			t.Error("the pause holds for other lanes")
		}
		// A transaction that took 20 seconds has resumed it, and is committed after the pause.
		table.add("queue:default kind:charge", statements.ChangeResume, "", begin.Add(time.Microsecond), time.Time{})
		after(2 * time.Second)
		if r.paused("default", at) || resumed != 1 {
			t.Errorf("the pause holds after its end, resumed %d times", resumed)
		}
		table.add("key:seven", statements.ChangePause, "", time.Now(), time.Now().Add(90*time.Second))
		after(80 * time.Second)
		if !r.paused("any", at) {
			t.Error("the pause has ended before its time")
		}
		after(11 * time.Second)
		if r.paused("any", at) || resumed != 2 {
			t.Errorf("the pause holds after its time, resumed %d times", resumed)
		}
		table.add("task:12", statements.ChangeCancel, "3", time.Now(), time.Time{})
		after(2 * time.Second)
		if !maps.Equal(cancelled, map[int64]int64{12: 3}) {
			t.Errorf("cancelled are %v", cancelled)
		}
		// What the database does not know any more ends, and errors change nothing.
		table.add("kind:charge", statements.ChangePause, "", time.Now(), time.Time{})
		after(2 * time.Second)
		table.mu.Lock()
		table.err, table.list = errors.New("down"), nil
		table.mu.Unlock()
		after(2 * time.Minute)
		if !r.paused("default", at) {
			t.Error("a database that does not answer has ended a pause")
		}
		table.mu.Lock()
		table.err = nil
		table.mu.Unlock()
		after(2 * time.Minute)
		if r.paused("default", at) {
			t.Error("a pause that the database has lost goes on")
		}
		cancel()
		synctest.Wait()
	})
}

// TestPausedTasksAreGivenBack: tasks that wait for a handler go back when they are paused.
func TestPausedTasksAreGivenBack(t *testing.T) {
	t.Parallel()
	runOf := func(kind string) *taskRun {
		return &taskRun{execution: execution{claim: &store.Claim{From: store.Lane{Kind: kind}}}, runEnv: &runEnv{queue: "default"}}
	}
	settled := make(chan *taskRun, 10)
	d := &dispatcher{env: &runEnv{queue: "default"}, changes: newChangeReader(nil, events{}), settle: settled, budget: newBudget(1, 10)}
	d.runners.waiting = []*taskRun{runOf("a"), runOf("b"), runOf("a")}
	d.givePausedBack()
	d.changes.pauses.Store(&[]heldBack{{Subject: control.Subject{Kind: "a"}}})
	d.givePausedBack()
	d.runners.all.Wait()
	if len(settled) != 2 || len(d.runners.waiting) != 1 || d.runners.waiting[0].claim.From.Kind != "b" {
		t.Errorf("%d tasks are given back, and %d wait", len(settled), len(d.runners.waiting))
	}
}

// TestPauseWhileTheWorkerStops: the worker obeys a pause while it stops. All tasks are given
// back before it stops to settle them.
func TestPauseWhileTheWorkerStops(t *testing.T) {
	t.Parallel()
	for range 2000 {
		settled := make(chan *taskRun, 1)
		d := &dispatcher{env: &runEnv{queue: "default"}, changes: newChangeReader(nil, events{}), settle: settled, budget: newBudget(1, 10)}
		d.runners.waiting = []*taskRun{{execution: execution{claim: &store.Claim{}}, runEnv: d.env}}
		match, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			<-match
			d.finish()
			close(stopped)
		}()
		d.runners.remove(func(*taskRun) bool { close(match); return true }, func(list []*taskRun) {
			runtime.Gosched() // finish would go on
			d.giveBack(list)
		})
		<-stopped
		if len(settled) != 1 {
			t.Fatal("the worker has stopped, and a task is not given back")
		}
	}
}

// TestLooksStandInForReads of changes, of which there is one a minute then, and another one
// as soon as a look sees a change, however late that was committed.
func TestLooksStandInForReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, stored := &changesTable{}, &storedTasks{ids: []int64{1}}
		p, _ := proberOf(stored)
		var busy atomic.Bool
		p.changes.changes, p.wanted = table.read, func() bool { return !busy.Load() }
		ctx, cancel := context.WithCancel(t.Context())
		go p.changes.work(ctx)
		go p.work(ctx)
		reads := func(d time.Duration) int {
			before := table.count()
			time.Sleep(d)
			synctest.Wait()
			return table.count() - before
		}
		reads(20 * time.Second) // tasks may have come just before
		for _, idle := range []time.Duration{0, 2 * asleepAfter} {
			reads(idle)
			if n := reads(10 * time.Minute); n > 12 || n < 9 {
				t.Errorf("%d reads in ten minutes after %v without a task", n, idle)
			}
			table.add("kind:k", statements.ChangePause, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 7 })
			if reads(2 * time.Second); !p.changes.paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("a pause is not seen within two seconds after %v without a task", idle)
			}
			table.add("kind:k", statements.ChangeResume, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 8 })
			if reads(2 * time.Second); p.changes.paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("the end of a pause is not seen within two seconds after %v without a task", idle)
			}
		}
		// Without looks, changes are read as before.
		busy.Store(true)
		reads(2 * time.Second)
		if n := reads(time.Minute); n < 50 {
			t.Errorf("a busy worker reads changes %d times a minute", n)
		}
		cancel()
		synctest.Wait()
	})
}

// TestChangesAreReadSeldomWhileReadsFail: a pause ends by itself while changes cannot be read. They are
// read about once a second, or more seldom.
func TestChangesAreReadSeldomWhileReadsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &changesTable{}
		r := newChangeReader(nil, events{slog.New(slog.DiscardHandler)})
		r.changes = table.read
		table.add("kind:charge", statements.ChangePause, "", time.Now(), time.Now().Add(10*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		go r.work(ctx)
		time.Sleep(5 * time.Second)
		table.mu.Lock()
		table.err = errors.New("down")
		table.mu.Unlock()
		time.Sleep(6 * time.Second)
		before := table.count()
		time.Sleep(10 * time.Second)
		if n := table.count() - before; n > 20 {
			t.Errorf("%d reads in ten seconds", n)
		}
		cancel()
		synctest.Wait()
	})
}

// TestReadersOfStepsReadAtOnce: a change that this process makes is read at once by the
// reader of a task that package tasktest runs, while it runs.
func TestReadersOfStepsReadAtOnce(t *testing.T) {
	t.Parallel()
	q, one, other := &Queue{}, newChangeReader(nil, events{}), newChangeReader(nil, events{})
	stop := q.obey(one)
	defer q.obey(other)()
	q.readChanges()
	if len(one.hurry) != 1 || len(other.hurry) != 1 {
		t.Fatalf("the readers were told to read %d and %d times, want once each", len(one.hurry), len(other.hurry))
	}
	<-one.hurry
	<-other.hurry
	stop()
	q.readChanges()
	if len(one.hurry) != 0 || len(other.hurry) != 1 {
		t.Errorf("after one has ended, %d of it and %d of the other are to read", len(one.hurry), len(other.hurry))
	}
}
