package claim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// pagedFinder finds lanes, in parts.
type pagedFinder struct {
	mu      sync.Mutex
	takes   time.Duration           // a statement
	lanes   map[string][]store.Head // by queue, in order
	limit   int                     // a statement that may find more fails; 0 is none
	finds   int
	largest int                    // the greatest part
	swept   map[string][]time.Time // when each queue was swept
}

var errTooSlow = errors.New("the statement takes too long")

func (f *pagedFinder) Find(_ context.Context, places []store.Place, most int) (found []store.Found, rest []store.Place, err error) {
	time.Sleep(f.takes) // of synctest's clock
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finds++
	if f.limit > 0 && most > f.limit {
		return nil, places, errTooSlow
	}
	for i, place := range places {
		if f.swept != nil {
			f.swept[place.Queue] = append(f.swept[place.Queue], time.Now())
		}
		lanes := f.lanes[place.Queue]
		at := 1 + slices.IndexFunc(lanes, func(h store.Head) bool { return h.Lane == place.Lane })
		n := min(len(lanes)-at, most-len(found))
		for _, h := range lanes[at : at+n] {
			found = append(found, store.Found{Queue: place.Queue, Head: h})
		}
		if len(found) == most {
			rest = slices.Clone(places[i:])
			if n > 0 {
				rest[0].Lane = lanes[at+n-1].Lane
			}
			break
		}
	}
	f.largest = max(f.largest, len(found))
	return found, rest, nil
}

func (f *pagedFinder) Recheck(context.Context, string, []store.Source) ([]store.Head, error) {
	return nil, nil
}

// newTestWorker returns pollers of queues with a sweeper that uses a finder. They claim one task of each source.
func newTestWorker(f finder, queues ...string) (*Pollers, *Sweeper, *fakeTable) {
	log, pollers, table := slog.New(slog.DiscardHandler), noUnknown(), &fakeTable{}
	sweeper := NewSweeper(f, pollers, table.Classify, log, noObserver{})
	handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Constant(0))}}
	for _, queue := range queues {
		pollers.Add(NewPoller(PollerConfig{
			Queue: queue, Budget: run.NewBudget(1000, 0), Log: log, Settler: idleSettler{}, Observer: noObserver{}, Dispatcher: noDispatcher{},
			Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers, Table: table, PollInterval: time.Second, AscendingIDs: true,
			Sweeper: sweeper, All: pollers,
		}))
	}
	return pollers, sweeper, table
}

// TestOneStatementSweepsAllQueues: an idle worker of 500 queues makes two sweeps a second at most, each queue is swept at each
// poll, and queues that ask for a sweep together share statements.
func TestOneStatementSweepsAllQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 500
		var queues []string
		for i := range count {
			queues = append(queues, fmt.Sprint("queue", i))
		}
		f := &pagedFinder{takes: 5 * time.Millisecond, swept: map[string][]time.Time{}}
		pollers, sweeper, _ := newTestWorker(f, queues...)
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { sweeper.Work(ctx) })
		for p := range pollers.All() {
			working.Go(func() { p.Loop(ctx) })
		}
		asked := func(n int) { // each asks when a third of its interval has gone
			for _, queue := range queues[:n] {
				pollers.Of(queue).SweepNow()
			}
			time.Sleep(time.Second / 3)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		idle := f.finds
		for range 30 {
			asked(20)
		}
		synctest.Wait()
		busy := f.finds - idle
		cancel()
		working.Wait()
		if idle > 2*60 {
			t.Errorf("an idle worker of %d queues swept %d times in a minute", count, idle)
		}
		if busy > 4*30 {
			t.Errorf("20 queues that asked for a sweep 30 times made %d statements", busy)
		}
		for queue, times := range f.swept {
			for i := range times[1:] {
				if pause := times[i+1].Sub(times[i]); pause > 1100*time.Millisecond {
					t.Fatalf("queue %s was not swept for %v", queue, pause)
				}
			}
		}
		if len(f.swept) != count {
			t.Errorf("%d queues were swept, want %d", len(f.swept), count)
		}
	})
}

// TestSweepsGoOnBehindWhatWasFound: statements that may find many lanes fail, as under a time limit. Smaller
// statements find all lanes nevertheless, and another queue is swept in the meantime.
func TestSweepsGoOnBehindWhatWasFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count, limit = 10_000, 300
		f := &pagedFinder{lanes: map[string][]store.Head{}, limit: limit, swept: map[string][]time.Time{}}
		for i := range count {
			h := head("k", 0, time.Hour)
			h.Key = strconv.Itoa(i)
			f.lanes["many"] = append(f.lanes["many"], h)
		}
		f.lanes["few"] = []store.Head{head("k", 0, time.Hour)}
		pollers, sweeper, table := newTestWorker(f, "few", "many")
		claimed := map[string]bool{}
		table.claim = func(p store.ClaimParams) (claims []*store.Claim, _ error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, from := range p.Sources {
				claimed[p.Queue+from.Key] = true
			}
			return nil, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { sweeper.Work(ctx) })
		for p := range pollers.All() {
			working.Go(func() { p.Loop(ctx) })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		working.Wait()
		if len(claimed) != count+1 {
			t.Errorf("tasks of %d lanes were claimed, want %d", len(claimed), count+1)
		}
		if f.largest > limit || len(f.swept["few"]) < 30 {
			t.Errorf("a part has %d lanes, and the other queue was swept %d times in a minute", f.largest, len(f.swept["few"]))
		}
	})
}

// TestWorkersClaimFromMoreLanesThanTheyTrack: the tracker knows some lanes at a time, and claims reach all lanes.
func TestWorkersClaimFromMoreLanesThanTheyTrack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := 200_000
		if testing.Short() {
			count = 100_000
		}
		f := &countedFinder{left: count}
		pollers, sweeper, table := newTestWorker(f, "q")
		p, most := pollers.Of("q"), 0
		table.claim = func(c store.ClaimParams) ([]*store.Claim, error) {
			time.Sleep(5 * time.Millisecond)
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, from := range c.Sources {
				f.take(from.Key)
			}
			most = max(most, p.lanes.Len())
			return nil, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { sweeper.Work(ctx) })
		working.Go(func() { p.Loop(ctx) })
		for minutes := 0; f.remaining() > 0 && minutes < 10; minutes++ {
			time.Sleep(time.Minute)
		}
		cancel()
		working.Wait()
		if n := f.remaining(); n > 0 || most > 50_000 {
			t.Errorf("%d of %d lanes were never claimed from; the worker knew %d at a time", n, count, most)
		}
	})
}

// countedFinder finds a lane for each number below a count, except for lanes that were taken.
type countedFinder struct {
	mu    sync.Mutex
	left  int
	taken map[int]bool
}

func (f *countedFinder) take(key string) {
	if f.taken == nil {
		f.taken = map[int]bool{}
	}
	if n, err := strconv.Atoi(key); err == nil && !f.taken[n] {
		f.taken[n] = true
	}
}

func (f *countedFinder) remaining() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left - len(f.taken)
}

func (f *countedFinder) Find(_ context.Context, places []store.Place, most int) (found []store.Found, rest []store.Place, _ error) {
	time.Sleep(50 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := strconv.Atoi(places[0].Key)
	if err != nil {
		from = -1
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for n := from + 1; n < f.left; n++ {
		if f.taken[n] {
			continue
		}
		at := store.Lane{State: statements.StateOpen, Key: strconv.Itoa(n), Kind: "k"}
		found = append(found, store.Found{Queue: places[0].Queue, Head: store.Head{Head: statements.Head{Lane: at, Anchor: now - 1e6, Now: now}}})
		if len(found) == most {
			place := places[0]
			place.Lane = at
			return found, []store.Place{place}, nil
		}
	}
	return found, nil, nil
}

func (f *countedFinder) Recheck(context.Context, string, []store.Source) ([]store.Head, error) {
	return nil, nil
}
