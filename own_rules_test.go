package falldue

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// ownLane returns a lane of tasks with the policy of a key.
func ownLane(key string) store.Lane {
	return store.Lane{State: "open", Kind: "k", Policy: key, Attempts: 1}
}

// TestPoliciesAreReadApartFromSweeps: while the policies of 12,000 lanes are read, a sweep
// finds the tasks of other lanes. The policies take few statements, and once they are
// known, the lanes are, too.
func TestPoliciesAreReadApartFromSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lanes = 12_000
		events := events{slog.New(slog.DiscardHandler)}
		reads, checks, answer := 0, 0, make(chan struct{})
		rules := newOwnRules(func(_ context.Context, keys []string) (map[string]string, error) {
			reads++
			<-answer
			texts := map[string]string{}
			for _, key := range keys {
				texts[key] = "delay 10s"
			}
			return texts, nil
		}, func(context.Context, []sqlgen.Formula) error { checks++; return nil }, func(map[string]string) {}, events)
		var heads []store.Head
		for i := range lanes {
			h := head("k", 1, time.Minute)
			h.Policy = fmt.Sprint(i)
			heads = append(heads, h)
		}
		plain := head("k", 0, 0)
		s := &sweeper{
			queue: "default", every: time.Second, lanes: newLaneTracker(), events: events, wake: func() {},
			gates: gates{handledKinds{"k": {rule: newRule(backoff.Constant(0))}}, readablePolicies{rules, "default"}},
			heads: func(context.Context) ([]store.Head, error) { return append(heads, plain), nil },
		}
		ctx, cancel := context.WithCancel(t.Context())
		go rules.work(ctx)
		for range 2 {
			if err := s.turn(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if due := s.lanes.due(time.Now(), 2*lanes); len(due) != 1 || due[0] != plain.Lane {
			t.Errorf("%d lanes are due while policies are read, want that of the plain task", len(due))
		}
		close(answer)
		time.Sleep(time.Minute) // of synctest's clock
		synctest.Wait()
		if due := s.lanes.due(time.Now(), 2*lanes); len(due) != lanes+1 {
			t.Errorf("%d lanes are due when all policies are known, want %d", len(due), lanes+1)
		}
		if err := s.turn(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if most := lanes/store.MaxBatch + 1; reads > most || checks > most*store.MaxBatch/maxChecked {
			t.Errorf("%d policies were read by %d statements and checked by %d", lanes, reads, checks)
		}
		cancel()
		synctest.Wait()
	})
}

// TestRulesInUseAreRemembered: however many policies are read, those that are in use stay,
// and the number of all is limited.
func TestRulesInUseAreRemembered(t *testing.T) {
	t.Parallel()
	rules := newOwnRules(nil, nil, nil, events{slog.New(slog.DiscardHandler)})
	used := newRule(backoff.Constant(time.Second))
	rules.loaded(map[string]ownRule{"used": {rule: used}})
	other := newRule(backoff.Constant(0))
	for i := range 5 * maxRecent {
		rules.loaded(map[string]ownRule{fmt.Sprint(i): {rule: other}})
		if i%1000 == 0 && rules.rule("default", ownLane("used"), nil) != used {
			t.Fatalf("after %d others the rule is forgotten", i)
		}
	}
	if n := len(rules.recent) + len(rules.older); n > 2*maxRecent {
		t.Errorf("%d rules are remembered", n)
	}
	if rules.rule("default", ownLane("0"), nil) != nil || len(rules.wanted) != 0 {
		t.Error("a rule that nobody used is remembered, or read though nobody waits for it")
	}
}

// TestUnreadablePoliciesDelayNoOther: policies that are missing, that no parser knows, or
// that the database computes differently are reported. The others are read.
func TestUnreadablePoliciesDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		texts, failures := map[string]string{"nonsense": "delay nonsense", "refused": "delay 7s"}, 0
		rules := newOwnRules(func(context.Context, []string) (map[string]string, error) {
			if failures++; failures < 3 {
				return nil, errors.New("no connection")
			}
			return texts, nil
		}, func(_ context.Context, formulas []sqlgen.Formula) error {
			for _, f := range formulas {
				if f.Micros(1) == 7_000_000 {
					return errors.New("computed differently")
				}
			}
			return nil
		}, func(map[string]string) {}, events{slog.New(slog.NewTextHandler(&log, nil))})
		ready := map[string]bool{}
		ask := func(key string) *rule {
			return rules.rule("default", ownLane(key), func() { ready[key] = true })
		}
		for i := range 100 {
			texts[fmt.Sprint(i)] = "delay 1s"
			ask(fmt.Sprint(i))
		}
		ask("nonsense")
		ask("refused")
		ask("missing")
		ctx, cancel := context.WithCancel(t.Context())
		go rules.work(ctx)
		time.Sleep(time.Minute) // of synctest's clock
		synctest.Wait()
		if len(ready) != 100 || ask("7") == nil {
			t.Errorf("%d policies are known, want 100", len(ready))
		}
		for _, text := range []string{"no connection", "nonsense", "computed differently", "missing is not in"} {
			if !strings.Contains(log.String(), text) {
				t.Errorf("the log does not say %q:\n%s", text, log.String())
			}
		}
		texts["missing"] = "delay 1s"
		if ask("missing"); ask("refused") != nil {
			t.Error("a policy that the database computes differently is used")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); ask("missing") == nil || !ready["missing"] {
			t.Error("a policy that has come back is not read")
		}
		cancel()
		synctest.Wait()
	})
}

// TestManyPoliciesDelayNoOtherTask: thousands of tasks with policies of their own wait,
// and plain tasks of another process start.
func TestManyPoliciesDelayNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		own, batch := 12_000, 1000
		db := testdb.Open(t, engine)
		q, err := New(db, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock := q.store.Server().Clock()
		if q.store.Server().Caps.SingleWriter {
			own = 3000 // SQLite runs in this process, with the race detector
		}
		for from := 0; from < own; from += batch {
			var policies, tasks []string
			for i := from; i < from+batch; i++ {
				policies = append(policies, fmt.Sprintf("('%016x', 'delay %dh', %s)", i, i+1, clock.Now))
				tasks = append(tasks, fmt.Sprintf("('default', 'k', '%016x', 1, %s, %[2]s, '7')", i, clock.Now))
			}
			db.MustExec("insert into falldue_policies (" + q.store.Server().Quote("key") + ", policy, created_at) values " + strings.Join(policies, ","))
			db.MustExec("insert into falldue_tasks (queue, kind, policy, attempts, updated_at, created_at, payload) values " + strings.Join(tasks, ","))
		}
		other, err := New(db, Config{})
		if err != nil {
			t.Fatal(err)
		}
		kind, ran := NewKind[int]("k", KindConfig{}), make(chan int)
		Handle(q, kind, func(_ context.Context, task Task[int]) error { ran <- task.Args; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		for i := range 3 {
			if _, err := kind.Enqueue(t.Context(), other, i); err != nil {
				t.Fatal(err)
			}
			if got := <-ran; got != i {
				t.Errorf("task %d ran, want %d", got, i)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPolicyIsReadWithinALimit: a database that does not answer must not keep policies from
// being read for ever.
func TestPolicyIsReadWithinALimit(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		rules := newOwnRules(s.Policies, s.CheckDelays, func(map[string]string) {}, events{slog.New(slog.DiscardHandler)})
		start := time.Now()
		if _, err := rules.load(t.Context(), []string{"key"}); err == nil {
			t.Error("a database that does not answer has a policy")
		}
		if took := time.Since(start); took > statementTimeout {
			t.Errorf("it took %v, more than %v", took, statementTimeout)
		}
	})
}
