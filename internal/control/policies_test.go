package control

import (
	"log/slog"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

func TestClaimsLeaveLanesOut(t *testing.T) {
	t.Parallel()
	log, health := slog.New(slog.DiscardHandler), NewHealthReport()
	known, own := Compile(backoff.Zizq()), Compile(backoff.Constant(time.Second))
	kinds := map[string]*CompiledPolicy{"known": known, "paused": known}
	perTask := NewTaskPolicies(nil, nil, health, log)
	perTask.loaded(map[string]CachedPolicy{"own": {Policy: own}})
	table := &controltest.Table{}
	table.Add("kind:paused", statements.ChangePause, "", time.Now(), time.Time{})
	overrides := NewOverrides(controltest.Database{}, kinds, controltest.Effects{}, health, log)
	changes := NewChangeReader(table, overrides, controltest.Effects{}, health, log)
	if err := changes.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := NewPolicies("default", kinds, changes, perTask, overrides)
	for at, want := range map[store.Lane]*CompiledPolicy{
		{Kind: "known"}:                   known,
		{Kind: "known", Policy: "own"}:    own,
		{Kind: "known", Policy: "unread"}: nil,
		{Kind: "unknown"}:                 nil,
		{Kind: "unknown", Policy: "own"}:  nil,
		{Kind: "paused"}:                  nil,
		{Kind: "paused", Policy: "own"}:   nil,
	} {
		if got := p.Of(at, nil); got != want {
			t.Errorf("in %+v the policy is %v, want %v", at, got, want)
		}
	}
	table.Add("queue:default", statements.ChangePolicy, `{"steps":[{"policy":"2 * original"}]}`, time.Now(), time.Time{})
	if err := changes.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := p.Version()
	overrides.Refresh(t.Context())
	if got := p.Of(store.Lane{Kind: "known"}, nil); got == known || got.base() != known || p.Version() == before {
		t.Errorf("under an override the policy is %+v", got)
	}
	if got := p.Of(store.Lane{Kind: "known", Policy: "own"}, nil); got != own {
		t.Errorf("a per-task policy that the override leaves out is %+v", got)
	}
}
