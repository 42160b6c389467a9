package control

import (
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/store"
)

// TestOverridesGoByTheDatabasesClock, also of a worker whose own clock stood still while its
// machine slept: the next read of the change says how late it is. A slow read changes nothing.
func TestOverridesGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	kind := Compile(backoff.ParseDeferred("1h"))
	o := NewOverrides(agrees, map[string]*CompiledPolicy{"mail": kind}, controltest.Effects{}, NewHealthReport(), slog.New(slog.DiscardHandler))
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
		o.ask([]knownChange{c})
		o.Refresh(t.Context())
		if got := o.PolicyOf("default", at, kind, nil).DelayIn(at); got != step.want {
			t.Errorf("%s: the delay is %v, want %v", step.what, got, step.want)
		}
	}
}
