package falldue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// TestCorruptLanesCauseNoExtraSweeps: a lane whose first task no claim ever finds must
// not keep the poller busy.
func TestCorruptLanesCauseNoExtraSweeps(t *testing.T) {
	t.Parallel()
	for _, unclaimable := range []bool{false, true} {
		p := newPoller(pollerConfig{queue: "default", budget: newBudget(1, 0)}, &sweeper{every: time.Second})
		at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
		p.lanes.found([]firstTask{{Lane: at, due: now.Add(-time.Second), unclaimable: unclaimable}})
		p.sweeper.at = now.Add(time.Hour)
		p.learn([]store.Lane{at}, nil, nil, 1, now)
		if soon := p.sweeper.next().Before(now.Add(time.Minute)); soon == unclaimable {
			t.Errorf("unclaimable %v: the next sweep is soon: %v", unclaimable, soon)
		}
		if _, known := p.lanes.next(); known {
			t.Errorf("unclaimable %v: the lane is still due", unclaimable)
		}
	}
}

// dead is a server that accepts connections and never answers.
type dead struct {
	driver.Conn
	id *int // makes connections differ
}

func (dead) Connect(context.Context) (driver.Conn, error) { return dead{id: new(int)}, nil }
func (dead) Driver() driver.Driver                        { return nil }
func (dead) Close() error                                 { return nil }

func (dead) PrepareContext(ctx context.Context, _ string) (driver.Stmt, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSweepTimesOutOnDeadConnection: the sweep ends before the poller's context, so that
// the poller tries again on another connection.
func TestSweepTimesOutOnDeadConnection(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		p := newPoller(pollerConfig{queue: "default", budget: newBudget(1, 0)}, &sweeper{every: time.Second, heads: s.NewLaneFinder("default").Find})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.sweeper.turn(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("sweep: %v, want its own timeout", err)
		}
	})
}

// TestListenersPollAsOften: with a longer interval, tasks of a process that forgets to
// notify would wait for it.
func TestListenersPollAsOften(t *testing.T) {
	t.Parallel()
	listen := func(context.Context, string, func(string)) error { return nil }
	for _, c := range []struct {
		cfg  Config
		want time.Duration
	}{
		{Config{}, time.Second},
		{Config{Listen: listen}, time.Second},
		{Config{Listen: listen, PollInterval: time.Minute}, time.Minute},
	} {
		if got := c.cfg.withDefaults().PollInterval; got != c.want {
			t.Errorf("listens: %v, PollInterval %v: polls every %v, want %v", c.cfg.Listen != nil, c.cfg.PollInterval, got, c.want)
		}
	}
}

// TestNoticesDoNotPreventSweeps: however many notices come, a task in a lane that the
// poller cannot know of is found.
func TestNoticesDoNotPreventSweeps(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	q, err := New(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind, ran := NewKind[int]("k", KindConfig{}), make(chan struct{})
	Handle(q, kind, func(context.Context, Task[int]) error { return nil })
	if _, err := kind.Enqueue(t.Context(), q, 1, EnqueueOptions{Priority: new(7)}); err != nil {
		t.Fatal(err)
	}
	handlers, err := q.handlers()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(q.cfg, q.store, q.keeper, handlers, nil)
	p, d := w.pollers[DefaultQueue], w.dispatchers[DefaultQueue]
	d.start(t.Context(), t.Context())
	d.runners.run = func(*taskRun) { close(ran) }
	for range 3 {
		p.sweepNow()
		if _, err := p.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.sweeper.running.Wait()
	}
	d.runners.all.Wait()
	select {
	case <-ran:
	default:
		t.Error("the task was not found")
	}
}

// TestALockedTaskIsLookedForAtEachPoll: a due task whose row somebody has locked does not
// keep a worker busy for as long as it is locked.
func TestALockedTaskIsLookedForAtEachPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sweeps, claims := 0, 0
		handlers := map[string]*handler{"k": {rule: newRule(backoff.Zizq())}}
		p := newPoller(pollerConfig{
			queue: "default", budget: newBudget(1, 0), events: events{slog.New(slog.DiscardHandler)}, behind: func() bool { return false },
			gates: gates{handledKinds(handlers)}, handlers: handlers,
			claimRows: func(context.Context, store.ClaimParams) ([]*store.Claim, error) { claims++; return nil, nil },
			dispatch:  func([]*store.Claim, []*rule, time.Time) {},
		}, &sweeper{every: time.Second, heads: func(context.Context) ([]store.Head, error) {
			sweeps++
			h := head("k", 0, time.Duration(sweeps)*time.Second)
			h.Anchor = 1e15 // it stays where it is
			return []store.Head{h}, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p.loop(ctx)
		if claims < 50 || claims > 70 || sweeps > 70 {
			t.Errorf("in a minute with a poll each second it swept %d times and claimed %d times", sweeps, claims)
		}
	})
}
