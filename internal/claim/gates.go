package claim

import (
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// A gate decides which lanes a claim leaves out. Such a lane costs a claim nothing, however many tasks it
// has.
type gate interface {
	// admit reports whether claims may take tasks from a lane. It may replace *r, the
	// policy of the lane. A gate that does not know yet leaves the lane out. If later is
	// not nil, the gate then finds out, and calls later when claims may take tasks from
	// the lane.
	admit(at store.Lane, r **control.CompiledPolicy, later func()) bool
}

// Gates are the gates of a queue, in the order in which they are called.
type Gates []gate

// NewGates returns the gates of a queue.
func NewGates(queue string, changes *control.ChangeReader, handlers map[string]*run.Handler, own *control.TaskPolicies, overrides *control.Overrides) Gates {
	return Gates{unpaused{changes, queue}, handledKinds(handlers), readablePolicies{own, queue}, overriddenPolicies{overrides, queue}}
}

// policyOf returns the policy of a lane, or nil if a gate leaves the lane out. For later see [gate].
func (g Gates) policyOf(at store.Lane, later func()) *control.CompiledPolicy {
	var r *control.CompiledPolicy
	for _, one := range g {
		if !one.admit(at, &r, later) {
			return nil
		}
	}
	return r
}

// version counts the changes of the policies that are in effect.
func (g Gates) version() (n int64) {
	for _, one := range g {
		if o, ok := one.(overriddenPolicies); ok {
			n += o.overrides.Version.Load()
		}
	}
	return n
}

// DelayOf returns the delay of a lane, and false if the delay is not known yet. All lanes are timed again
// when it is.
func (g Gates) DelayOf(at store.Lane) (time.Duration, bool) {
	r := g.policyOf(at, func() {})
	if r == nil {
		return 0, false
	}
	return r.DelayIn(at), true
}

// handledKinds admits lanes of kinds with a handler in this process. The policy of such a lane is its
// kind's.
type handledKinds map[string]*run.Handler

func (h handledKinds) admit(at store.Lane, r **control.CompiledPolicy, _ func()) bool {
	if h[at.Kind] == nil {
		return false
	}
	*r = h[at.Kind].Policy
	return true
}

// readablePolicies admits lanes without a per-task policy, and lanes with a per-task policy that this process can
// read. Such a policy becomes the policy of the lane.
type readablePolicies struct {
	policies interface {
		PolicyOf(queue string, at store.Lane, later func()) *control.CompiledPolicy
	}
	queue string
}

func (p readablePolicies) admit(at store.Lane, r **control.CompiledPolicy, later func()) bool {
	if at.Policy == "" {
		return true
	}
	*r = p.policies.PolicyOf(p.queue, at, later)
	return *r != nil
}

// unpaused admits lanes that no pause names.
type unpaused struct {
	changes *control.ChangeReader
	queue   string
}

func (u unpaused) admit(at store.Lane, _ **control.CompiledPolicy, _ func()) bool {
	return !u.changes.Paused(u.queue, at)
}

// overriddenPolicies gives lanes the policies that overrides make of theirs. It comes after the gates that
// set the original policies. A lane is left out until its overridden policy is computed.
type overriddenPolicies struct {
	overrides *control.Overrides
	queue     string
}

func (g overriddenPolicies) admit(at store.Lane, r **control.CompiledPolicy, later func()) bool {
	if !g.overrides.Any() {
		return true
	}
	*r = g.overrides.PolicyOf(g.queue, at, *r, later)
	return *r != nil
}
