package news

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// storedTasks are tasks that other processes store, as a prober sees them.
type storedTasks struct {
	mu     sync.Mutex
	ids    []int64
	err    error
	probes []time.Time
	pages  int

	changes int64
}

func (s *storedTasks) News(context.Context, time.Duration) (store.News, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note()
	return store.News{Task: slices.Max(append([]int64{0}, s.ids...)), Changes: s.changes}, s.err
}

// note counts the statements of one probe as one.
func (s *storedTasks) note() {
	if n := len(s.probes); n == 0 || s.probes[n-1] != time.Now() {
		s.probes = append(s.probes, time.Now())
	}
}

func (s *storedTasks) NewTasks(_ context.Context, after int64, limit int) (list []store.NewTask, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note()
	s.pages++
	slices.Sort(s.ids)
	for _, id := range s.ids {
		if id > after && len(list) < limit {
			list = append(list, store.NewTask{ID: id, Queue: "default", Head: statements.Head{Lane: store.Lane{State: statements.StateOpen, Kind: "k", Priority: int(id % 1000)}}})
		}
	}
	return list, s.err
}

// set changes the tasks while a prober runs.
func (s *storedTasks) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// count returns how many probes there were, and the time between the last two.
func (s *storedTasks) count() (n int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = len(s.probes); n > 1 {
		pause = s.probes[n-1].Sub(s.probes[n-2])
	}
	return n, pause
}

func (s *storedTasks) add(ids ...int64) { s.set(func() { s.ids = append(s.ids, ids...) }) }

// demandFunc is a demand.
type demandFunc func() bool

func (f demandFunc) wanted() bool { return f() }

// listening is a listener.
type listening bool

func (l listening) Listening() bool { return bool(l) }

// fakePollers are the pollers of a worker that handles the kind "k".
type fakePollers struct {
	mu             sync.Mutex
	due            map[store.Lane]time.Time // of the lanes that are known
	swept, claimed time.Time
	asleep         bool
	sweepRequested bool
}

func (f *fakePollers) Hint(_ string, at store.Lane, wait time.Duration) bool {
	f.set(func() { f.due[at] = time.Now().Add(wait) })
	return at.Kind == "k"
}

func (*fakePollers) Waiting() bool          { return true }
func (f *fakePollers) ClaimedAt() time.Time { return get(f, &f.claimed) }
func (f *fakePollers) SweptAt() time.Time   { return get(f, &f.swept) }
func (f *fakePollers) SweepNow()            { f.set(func() { f.sweepRequested = true }) }
func (f *fakePollers) Sleep(asleep bool)    { f.set(func() { f.asleep = asleep }) }
func (*fakePollers) Answered()              {}

// set changes the pollers while a prober runs, and get reads one of their fields.
func (f *fakePollers) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func get[T any](f *fakePollers, field *T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *field
}

// claim and sweep note that the pollers have claimed a task or made a sweep now.
func (f *fakePollers) claim() { f.set(func() { f.claimed = time.Now() }) }
func (f *fakePollers) sweep() { f.set(func() { f.swept = time.Now() }) }

// dueNow lists the priorities of the lanes that are known and due.
func (f *fakePollers) dueNow() (list []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, due := range f.due {
		if !due.After(time.Now()) {
			list = append(list, at.Priority)
		}
	}
	return list
}

// requested reports whether a sweep is requested, and withdraws the request.
func (f *fakePollers) requested() (was bool) {
	f.set(func() { was, f.sweepRequested = f.sweepRequested, false })
	return was
}

// readerOf returns a reader of changes.
func readerOf(table *controltest.Table) *control.ChangeReader {
	log, report := slog.New(slog.DiscardHandler), control.NewHealthReport()
	overrides := control.NewOverrides(controltest.Database{}, nil, controltest.Effects{}, report, log)
	return control.NewChangeReader(table, overrides, controltest.Effects{}, report, log)
}

// proberOf returns a prober of a worker that does not run, and its pollers.
func proberOf(s *storedTasks) (*Prober, *fakePollers) {
	f := &fakePollers{due: map[store.Lane]time.Time{}}
	return &Prober{byID: true, pollInterval: time.Second, table: s, changes: readerOf(nil), pollers: f, demand: demandFunc(func() bool { return true }), listener: listening(false)}, f
}

// TestProbesFollowActivity: a prober probes every 12 milliseconds while tasks come, four
// times a second together with the sweeps when none come, and seldom after eleven minutes,
// until a task runs again.
func TestProbesFollowActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s storedTasks
		p, pollers := proberOf(&s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Work(ctx)
		probes := func(d time.Duration) int {
			before, _ := s.count()
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Second)
				pollers.sweep() // each second
			}
			synctest.Wait()
			after, _ := s.count()
			return after - before
		}
		probes(20 * time.Second)
		if n := probes(time.Minute); n < 120 || n > 180 {
			t.Errorf("an idle worker probes %d times a minute", n)
		}
		for id := range int64(100) {
			s.add(id + 1)
			stored := time.Now()
			time.Sleep(75 * time.Millisecond)
			if id == 0 {
				time.Sleep(time.Second / 3) // the prober was idle
			}
			synctest.Wait()
			if due := pollers.dueNow(); len(due) != int(id)+1 {
				t.Fatalf("%v after task %d was stored %d lanes are known", time.Since(stored), id, len(due))
			}
		}
		if _, pause := s.count(); pause > 15*time.Millisecond {
			t.Errorf("while tasks come there are %v between two probes", pause)
		}
		probes(asleepAfter + 10*time.Second)
		if n := probes(time.Hour) / 60; n > 35 || !get(pollers, &pollers.asleep) {
			t.Errorf("a worker that has had no task for eleven minutes probes %d times a minute, and is asleep: %v", n, get(pollers, &pollers.asleep))
		}
		pollers.claim() // a sweep found a task
		if n := probes(time.Minute); n < 120 || get(pollers, &pollers.asleep) {
			t.Errorf("after a task the worker probes %d times a minute, and is asleep: %v", n, get(pollers, &pollers.asleep))
		}
	})
}

// TestProberFindsLateCommits: a prober finds tasks that are committed after tasks with greater ids.
func TestProberFindsLateCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storedTasks{ids: []int64{1, 2, 3}}
		p, pollers := proberOf(&s)
		go p.Work(t.Context())
		time.Sleep(time.Minute)
		s.add(5)
		time.Sleep(time.Second / 2) // the prober was idle
		for id := int64(10); id < 500; id += 10 {
			s.add(id)
			time.Sleep(idMargin - 30*time.Millisecond)
			s.add(id - 1)
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			if n := len(pollers.dueNow()); n != int(id)/10*2+1 {
				t.Fatalf("after the commits of tasks %d and %d, %d lanes are known", id, id-1, n)
			}
		}
	})
}

// TestProberFindsTasksWhoseIDsHaveGoneBack: ids decrease when a backup is restored, or after a failover.
// The prober finds the tasks, whether the worker was busy, idle or asleep, and whether or not tasks are left
// in the table. In the meantime done tasks are deleted, after which smaller greatest ids are normal.
func TestProberFindsTasksWhoseIDsHaveGoneBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quiet  time.Duration // between the last task and the loss
		fails  bool          // the probes of one second fail
		left   []int64
		within time.Duration // after the loss, the time until probes follow the new ids
	}{
		{quiet: time.Minute, within: 2 * time.Second},
		{quiet: time.Minute, left: []int64{3, 900}, within: 2 * time.Second},
		{quiet: asleepAfter + time.Minute, left: []int64{3}, within: 2 * control.MaxProbePause},
		{quiet: 20 * time.Millisecond, left: []int64{3}, fails: true, within: 2 * time.Second},
		{quiet: 20 * time.Millisecond, left: []int64{3}, within: 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := storedTasks{ids: []int64{3}}
			p, pollers := proberOf(&s)
			go p.Work(t.Context())
			time.Sleep(time.Second)
			found := func(id int64) bool {
				synctest.Wait()
				return slices.Contains(pollers.dueNow(), int(id%1000))
			}
			for id := int64(10_100); id < 10_120; id++ { // one after the other, each done immediately
				s.set(func() { s.ids = []int64{3, id} })
				time.Sleep(time.Second / 2)
				if !found(id) {
					t.Fatalf("%+v: task %d is not found while ids ascend", c, id)
				}
			}
			time.Sleep(c.quiet)
			s.set(func() { s.ids, s.err = slices.Clone(c.left), map[bool]error{true: errors.New("away")}[c.fails] })
			if c.fails {
				time.Sleep(time.Second)
				s.set(func() { s.err = nil })
			}
			time.Sleep(c.within)
			for _, id := range []int64{1001, 1002, 1003} {
				s.add(id)
				time.Sleep(control.MaxProbePause + time.Second/10)
				if !found(id) {
					t.Errorf("%+v: task %d is not found", c, id)
				}
			}
		})
	}
}

// TestListeningWorkerLooks: most tasks come with a notice. For the others, a worker that listens
// probes as often as an idle one that does not listen, however many tasks come.
func TestListeningWorkerLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s storedTasks
		p, pollers := proberOf(&s)
		p.listener = listening(true)
		go p.Work(t.Context())
		time.Sleep(time.Minute)
		before, _ := s.count()
		begin := time.Now()
		for id := range int64(100) {
			s.add(id + 1)
			time.Sleep(360 * time.Millisecond)
			synctest.Wait()
			if due := pollers.dueNow(); len(due) != int(id)+1 {
				t.Fatalf("after task %d was stored %d lanes are known", id, len(due))
			}
		}
		after, _ := s.count()
		if n, want := after-before, int(time.Since(begin)/(350*time.Millisecond)); n < want-2 || n > want+2 {
			t.Errorf("a worker that listens probed %d times in %v, want %d", n, time.Since(begin), want)
		}
		time.Sleep(asleepAfter + time.Minute)
		before, _ = s.count()
		time.Sleep(time.Hour)
		synctest.Wait()
		if after, _ := s.count(); (after-before)/60 > 35 {
			t.Errorf("asleep it probes %d times a minute", (after-before)/60)
		}
	})
}

// TestProberRests: a prober does not probe while the worker has enough tasks. Afterwards it finds the
// tasks that came in the meantime, or requests a sweep.
func TestProberRests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rest  time.Duration
		sweep bool
	}{
		{rest: time.Second / 2}, {rest: time.Minute, sweep: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s storedTasks
			p, pollers := proberOf(&s)
			rests := func() bool { return time.Since(p.arrival) < c.rest }
			p.arrival = time.Now()
			p.demand = demandFunc(func() bool { return !rests() || p.highWaters == nil && !c.sweep })
			go p.Work(t.Context())
			time.Sleep(c.rest - time.Second/10)
			if n, _ := s.count(); n > 1 {
				t.Errorf("%+v: %d probes", c, n)
			}
			s.add(7)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			found := slices.Contains(pollers.dueNow(), 7)
			if n, _ := s.count(); found == c.sweep || !get(pollers, &pollers.sweepRequested) || n < 10 {
				t.Errorf("%+v: after the rest the task is found: %v; there were %d probes", c, found, n)
			}
		})
	}
}

// TestProberLeavesManyTasksToSweeps: a prober leaves many new tasks to a sweep, and continues after them
// and after errors.
func TestProberLeavesManyTasksToSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s storedTasks
		p, pollers := proberOf(&s)
		go p.Work(t.Context())
		time.Sleep(time.Minute)
		s.set(func() {
			for id := range int64(100_000) {
				s.ids = append(s.ids, id+1)
			}
			s.pages = 0
		})
		time.Sleep(time.Second)
		synctest.Wait()
		s.set(func() {
			if !get(pollers, &pollers.sweepRequested) || s.pages > 200 {
				t.Errorf("a sweep is requested: %v; %d pages were read", get(pollers, &pollers.sweepRequested), s.pages)
			}
		})
		s.set(func() { s.err, s.pages = errors.New("the database is away"), 0 })
		time.Sleep(time.Minute)
		synctest.Wait()
		s.set(func() {
			if s.pages > 30 {
				t.Errorf("while the database is away it is asked %d times a minute", s.pages)
			}
		})
		s.set(func() { s.err, s.ids = nil, append(s.ids, 100_777) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !slices.Contains(pollers.dueNow(), 777) {
			t.Error("a task that was stored meanwhile is not found")
		}
	})
}

// TestLooksStandInForReads: probes stand in for reads of changes. There is one read a minute then, and
// another one as soon as a probe sees a change, however late that was committed.
func TestLooksStandInForReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, stored := &controltest.Table{}, &storedTasks{ids: []int64{1}}
		p, _ := proberOf(stored)
		var busy atomic.Bool
		p.changes, p.demand = readerOf(table), demandFunc(func() bool { return !busy.Load() })
		ctx, cancel := context.WithCancel(t.Context())
		go p.changes.Work(ctx)
		go p.Work(ctx)
		reads := func(d time.Duration) int {
			before := table.Count()
			time.Sleep(d)
			synctest.Wait()
			return table.Count() - before
		}
		reads(20 * time.Second) // tasks may have come just before
		for _, idle := range []time.Duration{0, 2 * asleepAfter} {
			reads(idle)
			if n := reads(10 * time.Minute); n > 12 || n < 9 {
				t.Errorf("%d reads in ten minutes after %v without a task", n, idle)
			}
			table.Add("kind:k", statements.ChangePause, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 7 })
			if reads(2 * time.Second); !p.changes.Paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("a pause is not seen within two seconds after %v without a task", idle)
			}
			table.Add("kind:k", statements.ChangeResume, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 8 })
			if reads(2 * time.Second); p.changes.Paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("the end of a pause is not seen within two seconds after %v without a task", idle)
			}
		}
		// Without probes, changes are read as before.
		busy.Store(true)
		reads(2 * time.Second)
		if n := reads(time.Minute); n < 50 {
			t.Errorf("a busy worker reads changes %d times a minute", n)
		}
		cancel()
		synctest.Wait()
	})
}

// TestProberAsksForSweeps: where ids do not ascend, a prober requests sweeps every 12 milliseconds while
// tasks run, twice a second when none run, and none at all when none have run for long.
func TestProberAsksForSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s storedTasks
		p, pollers := proberOf(&s)
		p.byID = false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Work(ctx)
		requests := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if pollers.requested() {
					n++
				}
			}
			return n
		}
		requests(20 * time.Second)
		if n := requests(time.Minute); n < 119 || n > 121 {
			t.Errorf("an idle worker asks for %d sweeps a minute, want 120", n)
		}
		requests(asleepAfter)
		if n := requests(time.Minute); n > 0 {
			t.Errorf("a worker that is asleep asks for %d sweeps a minute", n)
		}
		pollers.claim()
		requests(time.Second / 2)
		pollers.claim()
		if n := requests(time.Second / 4); n < 15 || n > 22 {
			t.Errorf("in a quarter of a second after a task the worker asks for %d sweeps, want 20", n)
		}
		if n, _ := s.count(); n > 0 {
			t.Errorf("there were %d probes by ids", n)
		}
	})
}
