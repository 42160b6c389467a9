package falldue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// TestOverridesHoldAndEnd: the newest and most specific override holds within two seconds,
// takes its steps and ends. One that cannot be obeyed leaves the old one in place, and is
// tried again.
func TestOverridesHoldAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &changesTable{}
		var log bytes.Buffer
		var retimed atomic.Int64
		var refuses atomic.Bool
		refused := errors.New("3 is another number here")
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		kind := newRule(backoff.ParseDeferred("1h"))
		o := newOverrides(func(_ context.Context, list []sqlgen.Formula) error {
			if refuses.Load() && strings.Contains(list[0].String(), "3 *") {
				return refused
			}
			return nil
		}, map[string]*rule{"mail": kind}, events{slog.New(slog.NewTextHandler(&log, nil))})
		o.changed = func() { retimed.Add(1) }
		r := newChangeReader(nil, o.events)
		r.changes, r.overridden = table.read, o.ask
		ctx, cancel := context.WithCancel(t.Context())
		go r.work(ctx)
		go o.work(ctx)
		set := func(subject, policy string, until time.Time) {
			table.add(subject, statements.ChangePolicy, `{"steps":[{"after_us":0,"policy":"`+policy+`"},{"after_us":10000000,"policy":"own / 2"}]}`, time.Now(), until)
			after(2 * time.Second)
		}
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		holds := func(what string, want time.Duration) {
			t.Helper()
			if got := o.rule("default", at, kind, nil).delayIn(at); got != want || o.current("default", at, kind).delayIn(at) != want {
				t.Errorf("%s: the delay is %v, want %v", what, got, want)
			}
		}

		if o.inForce.Load() != nil {
			t.Error("overrides hold that nobody has set")
		}
		set("kind:mail", "4 * own", time.Time{})
		holds("an override", 4*time.Hour)
		if rule := o.rule("default", at, kind, nil); rule.base() != kind || rule.setFor != "kind:mail" {
			t.Errorf("the rule is %+v", rule)
		}
		after(9 * time.Second)
		holds("its second step", 30*time.Minute)
		set("queue:default", "2 * own", time.Time{})
		holds("a less specific one", 30*time.Minute)
		set("queue:default kind:mail", "5 * own", time.Now().Add(time.Minute))
		holds("a more specific one", 5*time.Hour)
		set("kind:mail", "6 * own", time.Time{})
		holds("a newer one that is less specific", 5*time.Hour)
		after(time.Minute)
		holds("after the end", 30*time.Minute)
		before := retimed.Load()
		after(10 * time.Minute)
		if retimed.Load() != before {
			t.Errorf("lanes are timed %d times without a change", retimed.Load()-before)
		}

		refuses.Store(true)
		set("kind:mail", "3 * own", time.Time{})
		holds("one that the database computes differently", 30*time.Minute)
		after(7 * time.Second)
		if text := log.String(); strings.Count(text, "cannot be obeyed") != 1 || !strings.Contains(text, refused.Error()) || !strings.Contains(text, "subject=kind:mail") {
			t.Errorf("logged is %s", text)
		}
		set("kind:mail", "3 * own", time.Time{})
		refuses.Store(false)
		after(11 * time.Second)
		table.add("kind:mail", statements.ChangePolicy, `{"steps":[{"policy":"2 * theirs"}]}`, time.Now(), time.Time{})
		after(2 * time.Second)
		holds("one that this release cannot read", 30*time.Minute)
		if text := log.String(); strings.Count(text, "cannot be obeyed") != 2 || !strings.Contains(text, "theirs") {
			t.Errorf("logged is %s", text)
		}
		for _, subject := range []string{"kind:mail", "queue:default"} {
			table.add(subject, statements.ChangeClearPolicy, "", time.Now(), time.Time{})
		}
		after(2 * time.Second)
		holds("nothing", time.Hour)
		if o.inForce.Load() != nil {
			t.Error("overrides hold that were cleared")
		}
		cancel()
		synctest.Wait()
	})
}

// TestRefusedOverrideIsTriedAgain: one that the database could not check holds when it can.
func TestRefusedOverrideIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind, away := newRule(backoff.ParseDeferred("1h")), atomic.Bool{}
		away.Store(true)
		o := newOverrides(func(context.Context, []sqlgen.Formula) error {
			if away.Load() {
				return errors.New("the database is away")
			}
			return nil
		}, map[string]*rule{"mail": kind}, events{slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		c := knownChange{read: time.Now()}
		c.ID, c.Subject, c.Value = 1, "kind:mail", `{"steps":[{"policy":"3 * own"}]}`
		o.ask([]knownChange{c})
		go o.work(ctx)
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		synctest.Wait()
		if got := o.rule("default", at, kind, nil).delayIn(at); got != time.Hour {
			t.Errorf("the delay is %v before it is checked", got)
		}
		away.Store(false)
		time.Sleep(retryOverride + time.Second)
		synctest.Wait()
		if got := o.rule("default", at, kind, nil).delayIn(at); got != 3*time.Hour {
			t.Errorf("the delay is %v, want 3h", got)
		}
		cancel()
		synctest.Wait()
	})
}

// TestLanesAreTimedAnew: when another policy holds, lanes are due by it, however they became
// known, and also those that a limit holds back.
func TestLanesAreTimedAnew(t *testing.T) {
	t.Parallel()
	delay, now := time.Hour, time.Now()
	l := newLaneTracker()
	l.delayOf = func(store.Lane) (time.Duration, bool) { return delay, true }
	lane := func(kind string, attempts int) store.Lane {
		return store.Lane{State: statements.StateOpen, Kind: kind, Attempts: attempts}
	}
	l.hint(lane("hinted", 1), now.Add(time.Hour))
	l.found([]firstTask{{Lane: lane("found", 1), due: now.Add(30 * time.Minute), delay: time.Hour, anchor: 7}})
	l.hint(lane("new", 0), now.Add(40*time.Minute))
	l.hint(lane("held", 2), now.Add(time.Hour))
	l.hold(lane("held", 2), "k:held", time.Hour, time.Hour)
	delay = 10 * time.Minute
	l.retime()
	l.retime() // again changes nothing
	for at, want := range map[store.Lane]time.Duration{lane("hinted", 1): 10 * time.Minute, lane("found", 1): -20 * time.Minute, lane("new", 0): 40 * time.Minute, lane("held", 2): 10 * time.Minute} {
		if got := l.lanes[at].due.Sub(now); got != want {
			t.Errorf("%s is due in %v, want %v", at.Kind, got, want)
		}
	}
	if due := l.due(now, 9); len(due) != 1 || due[0].Kind != "found" {
		t.Errorf("due are %+v", due)
	}
}

// writes returns how often rows were written, by the server's own count: those of the table
// of tasks, or by the only connection of a pool. MySQL and MariaDB do not count inserts here,
// among which are those into temporary tables.
func writes(t *testing.T, db *sqlx.DB, engine string) (n int) {
	t.Helper()
	query := map[string]string{
		testdb.Postgres: "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables where relname = 'falldue_tasks'",
		testdb.SQLite:   "select total_changes()",
	}[engine]
	if query != "" {
		if err := db.Get(&n, query); err != nil {
			t.Fatal(err)
		}
		return n
	}
	rows, err := db.Query("show session status where Variable_name in ('Handler_update', 'Handler_delete')")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var one int
		if err := rows.Scan(&name, &one); err != nil {
			t.Fatal(err)
		}
		n += one
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSettingAPolicyWritesNoTask: four workers obey, for a thousand tasks that wait, and
// write no row. Who sets the policy writes one row of the table of changes.
func TestSettingAPolicyWritesNoTask(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		kind := NewKind[int]("mail", KindConfig{Policy: backoff.ParseDeferred("1h")})
		open := func() (*Queue, *sqlx.DB) {
			db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(1) // whose writes the server counts
			q, err := New(db, Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return q, db
		}
		control, db := open()
		if err := control.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		const tasks = 1000
		if _, err := kind.EnqueueMany(t.Context(), control, make([]int, tasks)); err != nil {
			t.Fatal(err)
		}
		db.MustExec("update falldue_tasks set attempts = 1, fence = 1")
		until := func(what string, ok func() bool) {
			t.Helper()
			for end := time.Now().Add(testdb.Patience); !ok(); {
				if time.Now().After(end) {
					t.Fatalf("waited %v for %s", testdb.Patience, what)
				}
				time.Sleep(time.Millisecond)
			}
		}
		var pools []*sqlx.DB
		var workers []*worker
		for range 4 {
			q, pool := open()
			Handle(q, kind, func(context.Context, Task[int]) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- q.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
			until("the worker to start", func() bool {
				q.mu.Lock()
				defer q.mu.Unlock()
				return q.worker != nil && !q.worker.pollers.sweptAt().IsZero()
			})
			until("the worker to announce itself", func() bool { // by a row that it writes
				var n int
				if err := db.Get(&n, "select count(*) from falldue_workers"); err != nil {
					t.Fatal(err)
				}
				return n == len(workers)+1
			})
			pools, workers = append(pools, pool), append(workers, q.worker)
		}
		if engine == testdb.Postgres { // which counts with a delay
			until("the server to count", func() bool { return writes(t, db, engine) == 2*tasks })
		}
		count := func() (list []int) {
			for _, pool := range append(pools, db) {
				list = append(list, writes(t, pool, engine))
			}
			return list
		}
		before, start := count(), time.Now()
		slower, err := backoff.ParseOverride("4 * own")
		if err != nil {
			t.Fatal(err)
		}
		if err := control.SetPolicy(t.Context(), Subject{Kind: "mail"}, slower, OverrideOptions{}); err != nil {
			t.Fatal(err)
		}
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		for _, w := range workers {
			until("the worker to obey", func() bool {
				delay, _ := w.pollers["default"].lanes.delayOf(at)
				return delay == 4*time.Hour
			})
		}
		t.Logf("%s: four workers obey after %v", engine, time.Since(start))
		want := append([]int(nil), before...)
		if engine == testdb.Postgres {
			if _, err := kind.Enqueue(t.Context(), control, 1, EnqueueOptions{Delay: time.Hour}); err != nil {
				t.Fatal(err)
			}
			until("the server to count", func() bool { return writes(t, db, engine) > before[4] })
			for i := range want {
				want[i]++ // that of the last enqueue, which shows that all before are counted
			}
		}
		if engine == testdb.SQLite {
			want[4]++ // the row of the table of changes
		}
		if after := count(); fmt.Sprint(after) != fmt.Sprint(want) {
			t.Errorf("the server has counted %v writes, before %v", after, before)
		}
	})
}

// TestPollersGoByOverrides: the lanes that a poller knows are due by an override as soon as it
// holds, without a sweep, also those whose tasks have a policy of their own.
func TestPollersGoByOverrides(t *testing.T) {
	t.Parallel()
	kind, own := newRule(backoff.ParseDeferred("1h")), newRule(backoff.ParseDeferred("2h"))
	o := newOverrides(func(context.Context, []sqlgen.Formula) error { return nil }, map[string]*rule{"mail": kind}, events{slog.New(slog.DiscardHandler)})
	p := newPoller(pollerConfig{
		queue: "default", budget: newBudget(1, 0), policyVersion: o.version.Load,
		gates: gates{handledKinds{"mail": {rule: kind}}, readablePolicies{rules: &ownRules{recent: map[string]ownRule{"own": {rule: own}}}}, overridden{o, "default"}},
	}, &sweeper{every: time.Hour})
	o.changed = signals{"default": p}.policiesChanged
	at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
	with := at
	with.Policy = "own"
	now := time.Now()
	p.lanes.found([]firstTask{{Lane: at, due: now.Add(time.Hour), delay: time.Hour, anchor: 7}, {Lane: with, due: now.Add(2 * time.Hour), delay: 2 * time.Hour, anchor: 7}})
	c := knownChange{read: now}
	c.ID, c.Subject, c.Value = 1, "queue:default", `{"steps":[{"policy":"own / 2"}],"include_own":true}`
	o.ask([]knownChange{c})
	o.refresh(t.Context()) // asks for the rule of tasks with a policy of their own
	o.refresh(t.Context())
	if one, other := p.lanes.lanes[at].due.Sub(now), p.lanes.lanes[with].due.Sub(now); one != 30*time.Minute || other != time.Hour {
		t.Errorf("the lanes are due in %v and %v, want 30m and 1h", one, other)
	}
	o.ask(nil)
	o.refresh(t.Context())
	if one, other := p.lanes.lanes[at].due.Sub(now), p.lanes.lanes[with].due.Sub(now); one != time.Hour || other != 2*time.Hour {
		t.Errorf("after the end the lanes are due in %v and %v, want 1h and 2h", one, other)
	}
}
