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
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// TestUnreadablePoliciesAreAnnounced: unreadable per-task policies are announced until they can be read, or
// no lane requests them any more.
func TestUnreadablePoliciesAreAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := storable.PolicyKey("2h"), storable.PolicyKey("1h")
		texts := map[string]string{a: "2 * theirs", b: "1h"}
		o := NewTaskPolicies(controltest.Database{OnPolicies: func(context.Context, []string) (map[string]string, error) { return texts, nil }}, controltest.Database{}, NewHealthReport(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go o.Work(ctx)
		announces := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			var info store.WorkerInfo
			if o.health.AddTo(&info); !slices.Equal(slices.Sorted(maps.Keys(info.Policies)), want) {
				t.Errorf("%s: it announces %v, want %v", what, info.Policies, want)
			}
		}
		ask := func(keys ...string) {
			for _, key := range keys {
				o.PolicyOf("default", store.Lane{Policy: key}, func() {})
			}
		}
		ask(a, b, "c")
		announces("one of a newer release, and one that is not there", a, "c")
		texts = map[string]string{a: "2h"}
		time.Sleep(retryRefused)
		ask(a, "c")
		announces("one can be read", "c")
		time.Sleep(retryRefused + keepUnreadable)
		announces("nobody asks for the other one")
		cancel()
		synctest.Wait()
	})
}

// TestTroublesAreAnnounced: a worker announces which overrides it cannot apply, and that it cannot read the
// table of changes, until the failure ends. It does so immediately, and once.
func TestTroublesAreAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, e := &controltest.Table{}, slog.New(slog.DiscardHandler)
		var refuses atomic.Bool
		o := NewOverrides(controltest.Database{OnCheck: func(context.Context, []sqlgen.Formula) error {
			if refuses.Load() {
				return errors.New("3 is another number here" + strings.Repeat("!", maxTrouble))
			}
			return nil
		}}, map[string]*CompiledPolicy{"mail": Compile(backoff.ParseDeferred("1h"))}, controltest.Effects{}, NewHealthReport(), e)
		r := NewChangeReader(table, o, controltest.Effects{}, o.health, e)
		var announcements atomic.Int64
		go func() {
			for range r.health.Changed {
				announcements.Add(1)
			}
		}()
		defer close(r.health.Changed)
		ctx, cancel := context.WithCancel(t.Context())
		go r.Work(ctx)
		go o.Work(ctx)
		asks := int64(1)
		after := func(what string, d time.Duration, unread string, refused ...store.Refusal) {
			t.Helper()
			announcements.Store(0)
			time.Sleep(d)
			synctest.Wait()
			var info store.WorkerInfo
			r.health.AddTo(&info)
			if !slices.Equal(info.Refused, refused) {
				t.Errorf("%s: the worker announces that it refuses %+v, want %+v", what, info.Refused, refused)
			}
			if info.Unread != unread {
				t.Errorf("%s: the worker announces that it cannot read changes because of %q, want %q", what, info.Unread, unread)
			}
			if n := announcements.Load(); n != asks {
				t.Errorf("%s: the worker asked for %d announcements, want %d", what, n, asks)
			}
		}
		set := func(policy string) {
			table.Add("kind:mail", statements.ChangePolicy, `{"steps":[{"policy":"`+policy+`"}]}`, time.Now(), time.Time{})
		}
		refused := store.Refusal{Subject: "kind:mail", Own: "delay 1h", Holds: "delay 1h", Error: "3 is another number here" + strings.Repeat("!", maxTrouble-24)}

		refuses.Store(true)
		set("3 * original")
		after("an override that the database computes differently", time.Minute, "", refused)
		refuses.Store(false)
		after("after another try", time.Minute, "")
		refuses.Store(true)
		set("4 * original")
		refused.Holds = "delay 3 * 1h"
		after("another one that it computes differently", time.Minute, "", refused)
		refuses.Store(false)
		after("after another try", time.Minute, "")
		set("2 * theirs")
		_, err := backoff.ParseOverride("2 * theirs")
		after("one that this release cannot read", time.Minute, "", store.Refusal{Subject: "kind:mail", Error: shortened(err.Error())})
		table.Add("kind:mail", statements.ChangeClearPolicy, "", time.Now(), time.Time{})
		asks = 2 // nothing is refused, and then the override before is no longer applied
		after("a clear", time.Minute, "")
		asks = 1
		table.Add("shard:3", statements.ChangePolicy, `{"steps":[{"policy":"1h"}]}`, time.Now(), time.Time{})
		after("one for a subject that this release does not know", time.Minute, "", store.Refusal{Subject: "shard:3", Error: errUnknownSubject.Error()})
		table.Add("shard:3", statements.ChangeClearPolicy, "", time.Now(), time.Time{})
		after("a clear of that", time.Minute, "")

		table.Lock()
		table.Err = errors.New("permission denied")
		table.Unlock()
		after("a table that it cannot read", time.Minute, "permission denied")
		table.Lock()
		table.Err = nil
		table.Unlock()
		after("a table that it can read again", 2*time.Minute, "")
		cancel()
		synctest.Wait()
	})
}

// TestPausesOfNewerReleasesAreAnnounced: a pause of a subject that this release does not know has no effect.
// The worker logs the pause once, and announces it until it is resumed or ends by itself.
func TestPausesOfNewerReleasesAreAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer // written by one goroutine, and read while it waits
		table, log := &controltest.Table{}, slog.New(slog.NewTextHandler(&said, nil))
		r := readerOf(table, controltest.Effects{}, log)
		ctx, cancel := context.WithCancel(t.Context())
		go r.Work(ctx)
		after := func(what string, d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d) // by the clock of the bubble
			synctest.Wait()
			var info store.WorkerInfo
			r.health.AddTo(&info)
			if got := slices.Sorted(maps.Keys(info.RefusedPauses)); !slices.Equal(got, want) {
				t.Errorf("%s: the worker announces that it cannot obey %v, want %v", what, got, want)
			}
			for _, text := range info.RefusedPauses {
				if text != errUnknownSubject.Error() {
					t.Errorf("%s: it says why: %q", what, text)
				}
			}
			if r.Paused("default", store.Lane{Kind: "mail"}) {
				t.Errorf("%s: other tasks are paused", what)
			}
		}
		table.Add("kind:charge", statements.ChangePause, "", time.Now(), time.Time{})
		after("a pause that it can obey", time.Minute)
		table.Add("shard:3", statements.ChangePause, "", time.Now(), time.Time{})
		table.Add("kind:mail shard:4", statements.ChangePause, "", time.Now(), time.Now().Add(10*time.Minute))
		after("two of a newer release", time.Minute, "kind:mail shard:4", "shard:3")
		after("later", 5*time.Minute, "kind:mail shard:4", "shard:3")
		if n := strings.Count(said.String(), "cannot apply a pause"); n != 2 {
			t.Errorf("it logged %d times, want once for each:\n%s", n, &said)
		}
		after("the end of one", 10*time.Minute, "shard:3")
		table.Add("shard:3", statements.ChangeResume, "", time.Now(), time.Time{})
		after("the resumption of the other", time.Minute)
		cancel()
		synctest.Wait()
	})
}
