package claim

import (
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/store"
)

// closed is a gate that admits no lane of a kind.
type closed string

func (c closed) admit(at store.Lane, _ **control.CompiledPolicy, _ func()) bool {
	return at.Kind != string(c)
}

// taskPolicies are per-task policies by their keys.
type taskPolicies map[string]*control.CompiledPolicy

func (p taskPolicies) PolicyOf(_ string, at store.Lane, _ func()) *control.CompiledPolicy {
	return p[at.Policy]
}

func TestGatesLeaveLanesOut(t *testing.T) {
	t.Parallel()
	known, own := control.Compile(backoff.Zizq()), control.Compile(backoff.Constant(time.Second))
	g := Gates{
		handledKinds{"known": {Policy: known}, "paused": {Policy: known}},
		closed("paused"),
		readablePolicies{policies: taskPolicies{"own": own}},
	}
	for at, want := range map[store.Lane]*control.CompiledPolicy{
		{Kind: "known"}:                known,
		{Kind: "known", Policy: "own"}: own,
		{Kind: "unknown"}:              nil,
		{Kind: "paused"}:               nil,
	} {
		if got := g.policyOf(at, nil); got != want {
			t.Errorf("in %+v the policy is %v, want %v", at, got, want)
		}
	}
}
