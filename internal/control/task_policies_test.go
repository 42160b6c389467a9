package control

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

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
	"github.com/jmoiron/sqlx"
)

// ownLane returns a lane of tasks with the policy of a key.
func ownLane(key string) store.Lane {
	return store.Lane{State: "open", Kind: "k", Policy: key, Attempts: 1}
}

// TestRulesInUseAreRemembered: however many policies are read, policies in use stay, and
// the number of all is limited.
func TestRulesInUseAreRemembered(t *testing.T) {
	t.Parallel()
	policies := NewTaskPolicies(nil, nil, NewHealthReport(), slog.New(slog.DiscardHandler))
	used := Compile(backoff.Constant(time.Second))
	policies.loaded(map[string]CachedPolicy{"used": {Policy: used}})
	other := Compile(backoff.Constant(0))
	for i := range 5 * maxRecent {
		policies.loaded(map[string]CachedPolicy{fmt.Sprint(i): {Policy: other}})
		if i%1000 == 0 && policies.PolicyOf("default", ownLane("used"), nil) != used {
			t.Fatalf("after %d others the policy is forgotten", i)
		}
	}
	if n := len(policies.cache.recent) + len(policies.cache.older); n > 2*maxRecent {
		t.Errorf("%d policies are remembered", n)
	}
	if policies.PolicyOf("default", ownLane("0"), nil) != nil || len(policies.cache.requested) != 0 {
		t.Error("a policy that nobody used is remembered, or read though nobody waits for it")
	}
}

// TestUnreadablePoliciesDelayNoOther: policies that are missing, that no parser knows, or
// that the database computes differently are reported. The others are read.
func TestUnreadablePoliciesDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		refusedKey, missingKey := storable.PolicyKey("delay 7s"), storable.PolicyKey("delay 9s")
		texts, failures := map[string]string{"nonsense": "delay nonsense", refusedKey: "delay 7s", "forged": "delay 8s"}, 0
		policies := NewTaskPolicies(controltest.Database{OnPolicies: func(context.Context, []string) (map[string]string, error) {
			if failures++; failures < 3 {
				return nil, errors.New("no connection")
			}
			return texts, nil
		}, OnCheck: func(_ context.Context, formulas []sqlgen.Formula) error {
			for _, f := range formulas {
				if f.Micros(1) == 7_000_000 {
					return errors.New("computed differently")
				}
			}
			return nil
		}}, controltest.Database{}, NewHealthReport(), slog.New(slog.NewTextHandler(&log, nil)))
		ready := map[string]bool{}
		ask := func(key string) *CompiledPolicy {
			return policies.PolicyOf("default", ownLane(key), func() { ready[key] = true })
		}
		for i := range 100 {
			text := fmt.Sprintf("delay %dm", i)
			texts[storable.PolicyKey(text)] = text
			ask(storable.PolicyKey(text))
		}
		ask("nonsense")
		ask("forged")
		ask(refusedKey)
		ask(missingKey)
		ctx, cancel := context.WithCancel(t.Context())
		go policies.Work(ctx)
		time.Sleep(time.Minute) // of synctest's clock
		synctest.Wait()
		if len(ready) != 100 || ask(storable.PolicyKey("delay 7m")) == nil {
			t.Errorf("%d policies are known, want 100", len(ready))
		}
		for _, text := range []string{"no connection", "nonsense", "computed differently", missingKey + " is not in", "whose key is " + storable.PolicyKey("delay 8s")} {
			if !strings.Contains(log.String(), text) {
				t.Errorf("the log does not say %q:\n%s", text, log.String())
			}
		}
		texts[missingKey] = "delay 9s"
		if ask(missingKey); ask(refusedKey) != nil {
			t.Error("a policy that the database computes differently is used")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); ask(missingKey) == nil || !ready[missingKey] {
			t.Error("a policy that has come back is not read")
		}
		cancel()
		synctest.Wait()
	})
}

// TestPolicyIsReadWithinALimit: a database that does not answer must not block reads of policies
// indefinitely.
func TestPolicyIsReadWithinALimit(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(testdb.Dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		policies := NewTaskPolicies(s, controltest.Database{}, NewHealthReport(), slog.New(slog.DiscardHandler))
		start := time.Now()
		if _, err := policies.Load(t.Context(), []string{"key"}); err == nil {
			t.Error("a database that does not answer has a policy")
		}
		if took := time.Since(start); took > retry.StatementTimeout {
			t.Errorf("it took %v, more than %v", took, retry.StatementTimeout)
		}
	})
}
