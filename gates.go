package falldue

import (
	"context"

	"github.com/falldue/falldue/internal/store"
)

// A gate decides which lanes a claim leaves out. Lanes that are left out cost a
// claim nothing, however many tasks they hold.
type gate interface {
	// admit reports whether claims may take tasks from a lane. It may replace the
	// rule that holds in it.
	admit(ctx context.Context, at store.Lane, r **rule) bool
}

// gates are the gates of a queue, in the order in which they are asked.
type gates []gate

// rule returns the rule that holds in a lane, and nil for a lane that this worker
// leaves out.
func (g gates) rule(ctx context.Context, at store.Lane) *rule {
	var r *rule
	for _, one := range g {
		if !one.admit(ctx, at, &r) {
			return nil
		}
	}
	return r
}

// handledKinds admits the kinds that this process has handlers for. The policy of
// its kind holds in a lane.
type handledKinds map[string]*handler

func (h handledKinds) admit(_ context.Context, at store.Lane, r **rule) bool {
	if h[at.Kind] == nil {
		return false
	}
	*r = h[at.Kind].rule
	return true
}

// readablePolicies admits lanes whose tasks have no policy of their own, or one
// that this process can read, which then holds in the lane.
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
