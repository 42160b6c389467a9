package falldue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/upkeep"
)

func TestHoardingIsConfigured(t *testing.T) {
	t.Parallel()
	cfg := Config{Queues: map[string]QueueConfig{"a": {}, "b": {MaxPrefetch: 7}}, MaxPrefetch: -1}.withDefaults()
	if a, b := cfg.Queues["a"].MaxPrefetch, cfg.Queues["b"].MaxPrefetch; a != -1 || b != 7 {
		t.Errorf("MaxPrefetch is %d and %d, want -1 and 7", a, b)
	}
	if n := (Config{}).withDefaults().Queues[DefaultQueue].MaxPrefetch; n != run.MaxPrefetch {
		t.Errorf("MaxPrefetch is %d by default, want %d", n, run.MaxPrefetch)
	}
	_, err := New(testdb.Open(t, testdb.SQLite), Config{MaxPrefetch: run.MaxPrefetch + 1})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "MaxPrefetch 1001") {
		t.Errorf("MaxPrefetch 1001: %v, want ErrInvalid", err)
	}
	if err := NewKind[int]("k", KindConfig{ImmediateLostRetries: -1}).err; !errors.Is(err, ErrInvalid) {
		t.Errorf("ImmediateLostRetries -1: %v, want ErrInvalid", err)
	}
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
		{Config{Notifications: Notifications{Listen: listen}}, time.Second},
		{Config{Notifications: Notifications{Listen: listen}, PollInterval: time.Minute}, time.Minute},
	} {
		if got := c.cfg.withDefaults().PollInterval; got != c.want {
			t.Errorf("listens: %v, PollInterval %v: polls every %v, want %v", c.cfg.Notifications.Listen != nil, c.cfg.PollInterval, got, c.want)
		}
	}
}

func TestRetentions(t *testing.T) {
	t.Parallel()
	kinds := map[string]KindConfig{}
	for name, cfg := range map[string]KindConfig{
		"plain":  {},
		"kept":   {DoneRetention: 2 * time.Hour, DeadRetention: Forever},
		"short":  {DoneRetention: DeleteImmediately, DeadRetention: time.Minute},
		"stated": {DeadRetention: time.Minute, CancelledRetention: time.Second},
	} {
		kinds[name] = cfg
	}
	with := func(cfg Config) upkeep.Retentions {
		handlers := map[string]*run.Handler{}
		for name, k := range kinds {
			handlers[name] = &run.Handler{Retention: k.retention(cfg)}
		}
		return upkeep.Retentions{Others: cfg.retentionOfOthers(), Handlers: handlers}
	}
	const done, dead, cancelled = statements.StateDone, statements.StateDead, statements.StateCancelled
	for _, c := range []struct {
		cfg  Config
		want map[string][]time.Duration // by kind: of done, dead and cancelled tasks
	}{
		{Config{}, map[string][]time.Duration{
			"plain": {0, run.Forever, run.Forever}, "kept": {2 * time.Hour, run.Forever, run.Forever},
			"short": {0, time.Minute, time.Minute}, "stated": {0, time.Minute, time.Second},
			"unknown": {run.Forever, run.Forever, run.Forever}, // another worker may keep them
		}},
		{Config{DoneRetention: time.Hour, DeadRetention: time.Hour}, map[string][]time.Duration{
			"plain": {time.Hour, time.Hour, time.Hour}, "kept": {2 * time.Hour, run.Forever, run.Forever},
			"short": {0, time.Minute, time.Minute}, "stated": {time.Hour, time.Minute, time.Second},
			"unknown": {time.Hour, time.Hour, time.Hour},
		}},
		{Config{DeadRetention: time.Hour, CancelledRetention: Forever}, map[string][]time.Duration{
			"plain": {0, time.Hour, run.Forever}, "short": {0, time.Minute, time.Minute}, "unknown": {run.Forever, time.Hour, run.Forever},
		}},
		{Config{DoneRetention: DeleteImmediately, DeadRetention: DeleteImmediately}, map[string][]time.Duration{
			"plain": {0, 0, 0}, "kept": {2 * time.Hour, run.Forever, run.Forever}, "unknown": {0, 0, 0},
		}},
		{Config{MaxDone: 100}, map[string][]time.Duration{
			"plain": {run.Forever, run.Forever, run.Forever}, "kept": {2 * time.Hour, run.Forever, run.Forever},
			"short": {0, time.Minute, time.Minute}, "unknown": {run.Forever, run.Forever, run.Forever},
		}},
		{Config{DoneRetention: Forever, CancelledRetention: DeleteImmediately}, map[string][]time.Duration{
			"plain": {run.Forever, run.Forever, 0}, "short": {0, time.Minute, time.Minute}, "unknown": {run.Forever, run.Forever, 0},
		}},
	} {
		r := with(c.cfg)
		for kind, want := range c.want {
			for i, state := range []string{done, dead, cancelled} {
				if got := r.Of(state, kind); got != want[i] {
					t.Errorf("with DoneRetention %v and DeadRetention %v, %s tasks of kind %s stay for %v, want %v", c.cfg.DoneRetention, c.cfg.DeadRetention, state, kind, got, want[i])
				}
			}
		}
	}
	for state, want := range map[string]time.Duration{done: 0, dead: time.Minute, cancelled: time.Second} {
		if got := with(Config{}).Shortest(state); got != want {
			t.Errorf("the shortest retention of %s tasks is %v, want %v", state, got, want)
		}
	}
	for want, r := range map[time.Duration]upkeep.Retentions{
		upkeep.CleanEvery: {Others: Config{DoneRetention: DeleteImmediately}.retentionOfOthers()},
		time.Second:       {Others: Config{DeadRetention: DeleteImmediately}.retentionOfOthers()},
		2 * time.Second:   {Others: Config{CancelledRetention: 2 * time.Second}.retentionOfOthers()},
	} {
		if got := r.Every(); got != want {
			t.Errorf("with %+v the cleaner looks every %v, want %v", r.Others, got, want)
		}
	}
	if got := (upkeep.Retentions{Others: Config{}.retentionOfOthers()}).Shortest(dead); got != run.Forever {
		t.Errorf("without any retention dead tasks stay for %v", got)
	}
}

func TestInvalidRetentions(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	for _, d := range []time.Duration{-2, -time.Hour, maxDelay + 1, Forever - 1} {
		for field, set := range map[string]func(c *Config, k *KindConfig){
			"DoneRetention":      func(c *Config, k *KindConfig) { c.DoneRetention, k.DoneRetention = d, d },
			"DeadRetention":      func(c *Config, k *KindConfig) { c.DeadRetention, k.DeadRetention = d, d },
			"CancelledRetention": func(c *Config, k *KindConfig) { c.CancelledRetention, k.CancelledRetention = d, d },
		} {
			var c Config
			var k KindConfig
			set(&c, &k)
			_, ofConfig := New(db, c)
			for owner, err := range map[string]error{"Config": ofConfig, `kind "k"`: NewKind[int]("k", k).err} {
				want := fmt.Sprintf("falldue: invalid: %s %v of %s: must be Forever, DeleteImmediately, or a duration up to 36,500 days", field, d, owner)
				if err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
			}
		}
	}
	for _, most := range []int{-1, 100_001} {
		_, err := New(db, Config{MaxDone: most})
		for owner, err := range map[string]error{"Config": err, `kind "k"`: NewKind[int]("k", KindConfig{MaxDone: most}).err} {
			if want := fmt.Sprintf("falldue: invalid: MaxDone %d of %s: must be 0 to 100,000", most, owner); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
	if _, err := New(db, Config{DoneRetention: Forever, DeadRetention: DeleteImmediately, CancelledRetention: maxDelay}); err != nil {
		t.Errorf("retentions that may be: %v", err)
	}
}
