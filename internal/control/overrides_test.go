package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// TestOverridesHoldAndEnd: the newest and most specific override takes effect within two seconds,
// takes its steps and ends. An override that cannot be applied leaves the old one in place, and is
// tried again.
func TestOverridesHoldAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &controltest.Table{}
		var log bytes.Buffer
		var retimed atomic.Int64
		var refuses atomic.Bool
		wrong := errors.New("3 is another number here")
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		kind := Compile(backoff.ParseDeferred("1h"))
		o := NewOverrides(controltest.Database{OnCheck: func(_ context.Context, list []sqlgen.Formula) error {
			if refuses.Load() && strings.Contains(list[0].String(), "3 *") {
				return wrong
			}
			return nil
		}}, map[string]*CompiledPolicy{"mail": kind}, controltest.Effects{OnPolicies: func() { retimed.Add(1) }}, NewHealthReport(), slog.New(slog.NewTextHandler(&log, nil)))
		r := NewChangeReader(table, o, controltest.Effects{}, o.health, o.events.log)
		ctx, cancel := context.WithCancel(t.Context())
		go r.Work(ctx)
		go o.Work(ctx)
		set := func(subject, policy string, until time.Time) {
			table.Add(subject, statements.ChangePolicy, `{"steps":[{"after_us":0,"policy":"`+policy+`"},{"after_us":10000000,"policy":"original / 2"}]}`, time.Now(), until)
			after(2 * time.Second)
		}
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		holds := func(what string, want time.Duration) {
			t.Helper()
			if got := o.PolicyOf("default", at, kind, nil).DelayIn(at); got != want || o.Current("default", at, kind).DelayIn(at) != want {
				t.Errorf("%s: the delay is %v, want %v", what, got, want)
			}
		}

		if o.active.Load() != nil {
			t.Error("overrides hold that nobody has set")
		}
		set("kind:mail", "4 * original", time.Time{})
		holds("an override", 4*time.Hour)
		if policy := o.PolicyOf("default", at, kind, nil); policy.base() != kind || policy.SetFor != "kind:mail" {
			t.Errorf("the policy is %+v", policy)
		}
		after(9 * time.Second)
		holds("its second step", 30*time.Minute)
		set("queue:default", "2 * original", time.Time{})
		holds("a less specific one", 30*time.Minute)
		applies := func(what string, want ...string) {
			t.Helper()
			var info store.WorkerInfo
			if o.health.AddTo(&info); !slices.Equal(slices.Sorted(maps.Keys(info.Applied)), want) {
				t.Errorf("%s: it announces %v, want %v", what, info.Applied, want)
			}
		}
		applies("two overrides", "kind:mail", "queue:default")
		set("queue:default kind:mail", "5 * original", time.Now().Add(time.Minute))
		holds("a more specific one", 5*time.Hour)
		set("kind:mail", "6 * original", time.Time{})
		holds("a newer one that is less specific", 5*time.Hour)
		after(time.Minute)
		holds("after the end", 30*time.Minute)
		before := retimed.Load()
		after(10 * time.Minute)
		if retimed.Load() != before {
			t.Errorf("lanes are timed %d times without a change", retimed.Load()-before)
		}

		refuses.Store(true)
		set("kind:mail", "3 * original", time.Time{})
		holds("one that the database computes differently", 30*time.Minute)
		applies("one that the database computes differently", "queue:default")
		after(7 * time.Second)
		if text := log.String(); strings.Count(text, "cannot apply a policy override") != 1 || !strings.Contains(text, wrong.Error()) || !strings.Contains(text, "subject=kind:mail") {
			t.Errorf("logged is %s", text)
		}
		set("kind:mail", "3 * original", time.Time{})
		refuses.Store(false)
		after(11 * time.Second)
		table.Add("kind:mail", statements.ChangePolicy, `{"steps":[{"policy":"2 * theirs"}]}`, time.Now(), time.Time{})
		after(2 * time.Second)
		holds("one that this release cannot read", 30*time.Minute)
		if text := log.String(); strings.Count(text, "cannot apply a policy override") != 2 || !strings.Contains(text, "theirs") {
			t.Errorf("logged is %s", text)
		}
		for _, subject := range []string{"kind:mail", "queue:default"} {
			table.Add(subject, statements.ChangeClearPolicy, "", time.Now(), time.Time{})
		}
		after(2 * time.Second)
		holds("nothing", time.Hour)
		if o.active.Load() != nil {
			t.Error("overrides hold that were cleared")
		}
		cancel()
		synctest.Wait()
	})
}

// TestRefusedOverrideIsTriedAgain: an override takes effect as soon as the database can check it.
func TestRefusedOverrideIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind, away := Compile(backoff.ParseDeferred("1h")), atomic.Bool{}
		away.Store(true)
		o := NewOverrides(controltest.Database{OnCheck: func(context.Context, []sqlgen.Formula) error {
			if away.Load() {
				return errors.New("the database is away")
			}
			return nil
		}}, map[string]*CompiledPolicy{"mail": kind}, controltest.Effects{}, NewHealthReport(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		c := knownChange{read: time.Now()}
		c.ID, c.Subject, c.Value = 1, "kind:mail", `{"steps":[{"policy":"3 * original"}]}`
		o.schedule([]knownChange{c})
		go o.Work(ctx)
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		synctest.Wait()
		if got := o.PolicyOf("default", at, kind, nil).DelayIn(at); got != time.Hour {
			t.Errorf("the delay is %v before it is checked", got)
		}
		away.Store(false)
		time.Sleep(retryRefused + time.Second)
		synctest.Wait()
		if got := o.PolicyOf("default", at, kind, nil).DelayIn(at); got != 3*time.Hour {
			t.Errorf("the delay is %v, want 3h", got)
		}
		cancel()
		synctest.Wait()
	})
}

// TestOverridesGoByTheDatabasesClock: even if the worker's clock stood still while its machine slept,
// the next read of the change shows how late it is. A slow read changes nothing.
func TestOverridesGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	kind := Compile(backoff.ParseDeferred("1h"))
	o := NewOverrides(controltest.Database{}, map[string]*CompiledPolicy{"mail": kind}, controltest.Effects{}, NewHealthReport(), slog.New(slog.DiscardHandler))
	at, read := store.Lane{State: "open", Kind: "mail", Attempts: 1}, time.Now().Add(-24*time.Second)
	for _, step := range []struct {
		what     string
		worker   time.Duration // since the change, by the worker's clock
		database time.Duration // and by the database's
		want     time.Duration
	}{
		{what: "set", want: 4 * time.Hour},
		{what: "the machine has slept for two minutes", worker: time.Second, database: 2 * time.Minute, want: 2 * time.Hour},
		{what: "a read takes 20 seconds", worker: 22 * time.Second, database: 2*time.Minute + time.Second, want: 2 * time.Hour},
		{what: "the database's clock is set back", worker: 23 * time.Second, database: 30 * time.Second, want: 4 * time.Hour},
		{what: "the machine has slept for an hour", worker: 24 * time.Second, database: time.Hour, want: time.Hour},
	} {
		c := knownChange{read: read.Add(step.worker)}
		c.ID, c.Subject, c.Value = 1, "kind:mail", `{"steps":[{"policy":"4 * original"},{"after_us":60000000,"policy":"2 * original"}]}`
		c.Created, c.Now, c.Ends = 1, 1+step.database.Microseconds(), time.Hour.Microseconds()
		o.schedule([]knownChange{c})
		o.Refresh(t.Context())
		if got := o.PolicyOf("default", at, kind, nil).DelayIn(at); got != step.want {
			t.Errorf("%s: the delay is %v, want %v", step.what, got, step.want)
		}
	}
}
