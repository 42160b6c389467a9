package falldue

import (
	"context"

	"github.com/falldue/falldue/internal/store"
)

// A gate decides which lanes a claim leaves out. A lane that is left out costs a
// claim nothing, however many tasks it holds.
type gate interface {
	// admit reports whether claims may take tasks from a lane. It may replace *r,
	// the rule of the lane.
	admit(ctx context.Context, at store.Lane, r **rule) bool
}

// gates are the gates of a queue, in the order in which they are called.
type gates []gate

// rule returns the rule of a lane, or nil if a gate leaves the lane out.
func (g gates) rule(ctx context.Context, at store.Lane) *rule {
	var r *rule
	for _, one := range g {
		if !one.admit(ctx, at, &r) {
			return nil
		}
	}
	return r
}

// handledKinds admits lanes of kinds that have a handler in this process. The rule
// of such a lane is its kind's.
type handledKinds map[string]*handler

func (h handledKinds) admit(_ context.Context, at store.Lane, r **rule) bool {
	if h[at.Kind] == nil {
		return false
	}
	*r = h[at.Kind].rule
	return true
}

// readablePolicies admits lanes whose tasks have no policy of their own, or a
// policy that this process can read. That policy is then the rule of the lane.
type readablePolicies struct {
	policies *policies
	queue    string
	events   events
}

func (p readablePolicies) admit(ctx context.Context, at store.Lane, r **rule) bool {
	if at.Policy == "" {
		return true
	}
	own, err := p.policies.get(ctx, at.Policy)
	if err != nil {
		p.events.unreadablePolicy(p.queue, at.Kind, err)
		return false
	}
	*r = own
	return true
}
