package claim

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/jmoiron/sqlx"
)

// TestCorruptLanesCauseNoExtraSweeps: a lane whose first task no claim ever finds must
// not keep the poller busy.
func TestCorruptLanesCauseNoExtraSweeps(t *testing.T) {
	t.Parallel()
	for _, unclaimable := range []bool{false, true} {
		p := newTestPoller(PollerConfig{Queue: "default", Budget: run.NewBudget(1, 0), PollInterval: time.Second, AscendingIDs: true}, fakeFinder{})
		at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
		p.lanes.Found([]lanes.FirstTask{{Lane: at, Due: now.Add(-time.Second), Unclaimable: unclaimable}})
		p.search.at = now.Add(time.Hour)
		p.learn([]store.Lane{at}, nil, nil, nil, 1, now)
		if soon := p.nextSearch().Before(now.Add(time.Minute)); soon == unclaimable {
			t.Errorf("unclaimable %v: the next sweep is soon: %v", unclaimable, soon)
		}
		if _, known := p.lanes.Next(); known {
			t.Errorf("unclaimable %v: the lane is still due", unclaimable)
		}
	}
}

// TestLanesThatTheirSharesCutOffStayDue: a claim that took its whole share of a lane has left tasks there, and a claim
// that took less has emptied the lane.
func TestLanesThatTheirSharesCutOffStayDue(t *testing.T) {
	t.Parallel()
	for taken, due := range map[int]bool{1: false, 2: true} {
		p := newTestPoller(PollerConfig{Queue: "default", Budget: run.NewBudget(1, 0), PollInterval: time.Second, AscendingIDs: true}, fakeFinder{})
		at, now := store.Lane{State: "open", Kind: "k"}, time.Now()
		p.lanes.Hint(at, now.Add(-time.Second))
		sources := p.lanes.BeginClaim([]store.Lane{at})
		sources[0].Room = 2
		var claims []*store.Claim
		for n := range taken {
			c := &store.Claim{From: at}
			c.Place, c.Anchor, c.Now = 1, int64(n+1), 10
			claims = append(claims, c)
		}
		p.learn([]store.Lane{at}, sources, []*control.CompiledPolicy{control.Compile(backoff.Constant(time.Hour))}, claims, 9, now)
		if _, known := p.lanes.Next(); known != due {
			t.Errorf("a claim took %d of up to 2 tasks: the lane is still due: %v", taken, known)
		}
	}
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
		db := sqlx.NewDb(sql.OpenDB(testdb.Dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		p := newTestPoller(PollerConfig{Queue: "default", Budget: run.NewBudget(1, 0), PollInterval: time.Second, AscendingIDs: true}, s.NewLaneFinder())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		p.search.beginSweep()
		if _, _, err := p.Sweeper.find(ctx, []store.Place{p.search.sweep.place}); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("sweep: %v, want its own timeout", err)
		}
	})
}

// TestSlowClaimsAreMadeFurtherAhead: handlers must not wait for a claim, however long its round trips take.
func TestSlowClaimsAreMadeFurtherAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq())}}
		handlers["k"].Pace.Record(10 * time.Millisecond)
		p := newTestPoller(PollerConfig{
			Queue: "default", Budget: run.NewBudget(10, run.MaxPrefetch), Handlers: handlers, Policies: policiesOf(run.PoliciesOf(handlers)),
		}, fakeFinder{})
		due := []store.Lane{{State: "open", Kind: "k"}}
		if _, room := p.plan(due); room != 10+20 {
			t.Errorf("before the first claim, it claims %d tasks, want one for each of 10 handlers and 20 ahead", room)
		}
		_, _, err := p.send(t.Context(), time.Minute, 1, func(context.Context) ([]*store.Claim, error) {
			time.Sleep(50 * time.Millisecond)
			return []*store.Claim{{From: due[0]}}, nil
		})
		if _, room := p.plan(due); err != nil || room != 9+150 {
			t.Errorf("after a claim of 50 ms, it claims %d tasks, want one for each of 9 free handlers and 150 ahead; error %v", room, err)
		}
	})
}

// TestALockedTaskIsLookedForAtEachPoll: while another transaction has locked the row of a due task,
// the task does not keep a worker busy.
func TestALockedTaskIsLookedForAtEachPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sweeps, claims := 0, 0
		handlers := map[string]*run.Handler{"k": {Policy: control.Compile(backoff.Zizq())}}
		p := newTestPoller(PollerConfig{
			Queue: "default", Budget: run.NewBudget(1, 0), Log: slog.New(slog.DiscardHandler),
			Policies: policiesOf(run.PoliciesOf(handlers)), Handlers: handlers,
			Table:      fakeTable{claim: func(store.ClaimParams) ([]*store.Claim, error) { claims++; return nil, nil }},
			Dispatcher: noDispatcher{}, PollInterval: time.Second, AscendingIDs: true,
		}, fakeFinder{find: func() ([]store.Head, error) {
			sweeps++
			h := head("k", 0, time.Duration(sweeps)*time.Second)
			h.Anchor = 1e15 // it stays where it is
			return []store.Head{h}, nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p.work(ctx)
		if claims < 50 || claims > 70 || sweeps > 70 {
			t.Errorf("in a minute with a poll each second it swept %d times and claimed %d times", sweeps, claims)
		}
	})
}
