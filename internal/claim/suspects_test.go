package claim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// refusingLane is a lane in memory. Its tasks have the anchor 1e15 each. It refuses claims of
// some of them.
type refusingLane struct {
	at      store.Lane
	refuses func(id int64) bool
	takes   time.Duration // how long a claim takes
	table   fakeTable

	mu      sync.Mutex // the sweeper works alongside the poller
	tasks   []int64
	sent    int // claims and lists of candidates
	claimed []int64
}

// refusedID is the error of a claim. It names the first refused task.
type refusedID int64

func (id refusedID) Error() string { return "no" }

func (l *refusingLane) take(from store.Source, ids []int64) (claims []*store.Claim, err error) {
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if i := slices.IndexFunc(ids, l.refuses); i >= 0 {
		return nil, refusedID(ids[i])
	}
	for _, id := range ids {
		claims = append(claims, &store.Claim{Claimed: statements.Claimed{Place: 1, ID: id, Anchor: 1e15, Now: 1e15}, From: from.Lane})
	}
	l.claimed = append(l.claimed, ids...)
	l.tasks = slices.DeleteFunc(l.tasks, func(id int64) bool { return slices.Contains(ids, id) })
	return claims, nil
}

// first returns up to limit tasks.
func (l *refusingLane) first(limit int) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tasks[:min(len(l.tasks), limit)])
}

// poller returns a poller of a queue that has only this lane.
func (l *refusingLane) poller(class dialect.Class, log *strings.Builder) *Poller {
	l.table = l.fakes(class)
	p := newTestPoller(PollerConfig{
		Queue: "default", Budget: run.NewBudget(1e9, 0), Log: slog.New(slog.NewTextHandler(log, nil)),
		Policies: policiesOf(map[string]*control.CompiledPolicy{"k": control.Compile(backoff.Zizq())}),
		Handlers: map[string]*run.Handler{"k": {}},
		Table:    &l.table, Dispatcher: noDispatcher{}, PollInterval: time.Second, AscendingIDs: true,
	}, fakeFinder{find: func() ([]store.Head, error) {
		if len(l.first(1)) == 0 {
			return nil, nil
		}
		return []store.Head{{Head: statements.Head{Lane: l.at, Anchor: 1e15, Now: 1e15 + 1e6}}}, nil
	}})
	return p
}

// fakes returns a table of the lane, whose errors have a class.
func (l *refusingLane) fakes(class dialect.Class) fakeTable {
	return fakeTable{
		class: class,
		claim: func(p store.ClaimParams) ([]*store.Claim, error) {
			return l.take(p.Sources[0], l.first(p.Limit))
		},
		candidates: func(_ context.Context, _ store.Source, after int64, limit int) (list []store.Candidate, _ error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sent++
			for _, id := range l.tasks {
				if id > after && len(list) < limit {
					list = append(list, store.Candidate{Key: store.Key{TaskID: id}, Anchor: 1e15})
				}
			}
			return list, nil
		},
		keys: func(_ context.Context, p store.ClaimParams, list []store.Candidate) (store.Limited, error) {
			var ids []int64
			for _, c := range list {
				ids = append(ids, c.TaskID)
			}
			claims, err := l.take(p.Sources[0], ids)
			return store.Limited{Claims: claims, Rests: make([]store.Rest, 1)}, err
		},
	}
}

// TestPollerStepsOverRefusedTasks: whatever the class of the error, a poller claims the other
// tasks with few statements. Once a minute, it names a refused task in the log. It claims the
// refused tasks when the database no longer refuses them.
func TestPollerStepsOverRefusedTasks(t *testing.T) {
	t.Parallel()
	for _, class := range classes {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			mended := false
			l := &refusingLane{
				at:      store.Lane{State: statements.StateOpen, Kind: "k"},
				refuses: func(id int64) bool { return !mended && (id == 300 || id == 700 || id == 701) },
			}
			for id := range int64(1000) {
				l.tasks = append(l.tasks, id)
			}
			p := l.poller(class, &log)
			run := func(d time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				p.work(ctx)
			}
			run(50 * time.Second)
			if len(l.claimed) != 997 {
				t.Errorf("%v: claimed %d tasks, want 997", class, len(l.claimed))
			}
			if l.sent > 300 {
				t.Errorf("%v: %d statements in 50 seconds", class, l.sent)
			}
			if n := strings.Count(log.String(), "refuses the claims of some tasks"); n != 1 {
				t.Errorf("%v: the log has %d lines about it:\n%s", class, n, log.String())
			}
			mended = true
			run(3 * time.Minute)
			if len(l.claimed) != 1000 || len(p.suspects.known) != 0 {
				t.Errorf("%v: claimed %d tasks in all, want 1000; %d lanes are suspect", class, len(l.claimed), len(p.suspects.known))
			}
		})
	}
}

// TestRefusedTasksAreTriedAfterOthers: many tasks of a lane are refused, with errors of all
// classes. However long a statement takes, a few hundred statements claim the others.
func TestRefusedTasksAreTriedAfterOthers(t *testing.T) {
	t.Parallel()
	for takes := time.Duration(0); takes <= time.Second; takes += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			refused := map[int64]dialect.Class{}
			for i := range int64(3 * len(classes)) {
				refused[500+i*i] = classes[i%int64(len(classes))]
			}
			l := &refusingLane{at: store.Lane{State: statements.StateOpen, Kind: "k"}, takes: takes, refuses: func(id int64) bool {
				_, ok := refused[id]
				return ok
			}}
			for id := range int64(1000) {
				l.tasks = append(l.tasks, id)
			}
			p := l.poller(dialect.Other, &log)
			l.table.classify = func(err error) dialect.Class {
				var id refusedID
				errors.As(err, &id)
				return refused[int64(id)]
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			p.Dispatcher = dispatchFunc(func() {
				if len(l.claimed) == 1000-len(refused) {
					cancel()
				}
			})
			p.work(ctx)
			// About a dozen statements find each refused task.
			if took := time.Since(start); ctx.Err() != context.Canceled || took > 5*time.Second+300*takes {
				t.Errorf("with statements of %v, %d tasks were claimed within %v", takes, len(l.claimed), took)
			}
		})
	}
}

// TestADatabaseThatRefusesAllClaimsIsNotFlooded: while the database refuses all claims, a
// poller sends few. When the database no longer does so, the poller claims everything.
func TestADatabaseThatRefusesAllClaimsIsNotFlooded(t *testing.T) {
	t.Parallel()
	for _, class := range classes {
		if retry.KindOf(class, false) == retry.Refused {
			continue // each of the tasks is refused
		}
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			away := true
			l := &refusingLane{at: store.Lane{State: statements.StateOpen, Kind: "k"}, refuses: func(int64) bool { return away }}
			for id := range int64(1000) {
				l.tasks = append(l.tasks, id)
			}
			p := l.poller(class, &log)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				p.work(ctx)
				cancel()
				if away && l.sent > 100 {
					t.Errorf("%v: %d statements in 20 seconds", class, l.sent)
				}
				away = false
			}
			if len(l.claimed) != 1000 {
				t.Errorf("%v: claimed %d tasks, want 1000", class, len(l.claimed))
			}
		})
	}
}

// TestHangingClaimsLeaveOtherLanesTheirTurn: claims from a suspect lane that time out delay
// the other lanes for seconds, and no more are sent when the worker ends. All statements
// have a time limit.
func TestHangingClaimsLeaveOtherLanesTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &refusingLane{at: store.Lane{State: statements.StateOpen, Kind: "k"}}
		for id := range int64(400) {
			l.tasks = append(l.tasks, id)
		}
		p := l.poller(dialect.Other, &strings.Builder{})
		other := l.at
		other.Priority = 5
		p.Sweeper.finder = fakeFinder{find: func() (heads []store.Head, _ error) { // all tasks stay
			for _, at := range []store.Lane{l.at, other} {
				heads = append(heads, store.Head{Head: statements.Head{Lane: at, Anchor: 1e15, Now: 1e15 + 1e6}})
			}
			return heads, nil
		}}
		claimed := make(chan time.Time, 1000)
		l.table.claim = func(c store.ClaimParams) ([]*store.Claim, error) {
			if slices.ContainsFunc(c.Sources, func(from store.Source) bool { return from.Lane == l.at }) {
				return nil, errors.New("no")
			}
			claimed <- time.Now()
			return nil, nil
		}
		hang := func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("a statement has no time limit")
			}
			<-ctx.Done()
			return ctx.Err()
		}
		l.table.keys = func(ctx context.Context, _ store.ClaimParams, _ []store.Candidate) (store.Limited, error) {
			return store.Limited{}, hang(ctx)
		}
		candidates, hangs := l.table.candidates, atomic.Bool{}
		l.table.candidates = func(ctx context.Context, from store.Source, after int64, limit int) ([]store.Candidate, error) {
			if from.Lane == other { // it was claimed from together with the first one
				claimed <- time.Now()
				return nil, nil
			}
			if hangs.Load() {
				return nil, hang(ctx)
			}
			return candidates(ctx, from, after, limit)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan time.Time, 1)
		go func() { p.work(ctx); ended <- time.Now() }()
		p.Hint(l.at, 0)
		for range 20 {
			time.Sleep(10 * time.Second)
			start := time.Now()
			for len(claimed) > 0 {
				<-claimed
			}
			p.Hint(other, 0)
			select {
			case at := <-claimed:
				if after := at.Sub(start); after > 15*time.Second {
					t.Errorf("another lane waited for %v", after)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("another lane is not claimed from")
			}
		}
		hangs.Store(true)
		time.Sleep(5 * time.Minute)
		start := time.Now()
		cancel()
		if after := (<-ended).Sub(start); after > 10*time.Second {
			t.Errorf("the poller ended %v after its context", after)
		}
	})
}

// TestLaneWhoseRefusedTaskIsGoneIsNoLongerSuspect: another process has claimed or deleted the refused task.
func TestLaneWhoseRefusedTaskIsGoneIsNoLongerSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &refusingLane{at: store.Lane{State: statements.StateOpen, Kind: "k"}, tasks: []int64{1, 2, 3}, refuses: func(id int64) bool { return id == 1 }}
		p := l.poller(dialect.Other, &strings.Builder{})
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			p.work(ctx)
		}
		run(time.Minute)
		if len(p.suspects.known) != 1 {
			t.Fatal("the lane is not suspect")
		}
		for id := range int64(60) { // a task each half a minute
			l.tasks = []int64{10 + id}
			p.Hint(l.at, 0)
			run(30 * time.Second)
		}
		if len(p.suspects.known) != 0 || len(l.claimed) != 62 {
			t.Errorf("%d lanes are suspect after half an hour, and %d tasks claimed", len(p.suspects.known), len(l.claimed))
		}
	})
}
