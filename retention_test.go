package falldue

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/upkeep"
)

func TestRetentions(t *testing.T) {
	t.Parallel()
	kinds := map[string]KindConfig{}
	for name, cfg := range map[string]KindConfig{
		"plain":  {},
		"kept":   {DoneRetention: 2 * time.Hour, DeadRetention: -1},
		"short":  {DoneRetention: -1, DeadRetention: time.Minute},
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
		{Config{DeadRetention: time.Hour, CancelledRetention: -1}, map[string][]time.Duration{
			"plain": {0, time.Hour, run.Forever}, "short": {0, time.Minute, time.Minute}, "unknown": {run.Forever, time.Hour, run.Forever},
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
	if got := (upkeep.Retentions{Others: Config{}.retentionOfOthers()}).Shortest(dead); got != run.Forever {
		t.Errorf("without any retention dead tasks stay for %v", got)
	}
}
