package falldue

import (
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// closed is a gate that admits no lane of a kind.
type closed string

func (c closed) admit(at store.Lane, _ **rule, _ func()) bool { return at.Kind != string(c) }

func TestGatesLeaveLanesOut(t *testing.T) {
	t.Parallel()
	known, own := newRule(backoff.Zizq()), newRule(backoff.Constant(time.Second))
	g := gates{
		handledKinds{"known": {rule: known}, "paused": {rule: known}},
		closed("paused"),
		readablePolicies{rules: &ownRules{recent: map[string]ownRule{"own": {rule: own}}}},
	}
	for at, want := range map[store.Lane]*rule{
		{Kind: "known"}:                known,
		{Kind: "known", Policy: "own"}: own,
		{Kind: "unknown"}:              nil,
		{Kind: "paused"}:               nil,
	} {
		if got := g.rule(at, nil); got != want {
			t.Errorf("in %+v the rule is %v, want %v", at, got, want)
		}
	}
}
