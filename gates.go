package falldue

import "github.com/falldue/falldue/internal/store"

// A gate decides which lanes a claim leaves out. A lane that is left out costs a
// claim nothing, however many tasks it holds.
type gate interface {
	// admit reports whether claims may take tasks from a lane. It may replace *r,
	// the rule of the lane. A gate that does not know yet leaves the lane out. If
	// later is not nil it then finds out, and calls later when claims may take tasks
	// from the lane.
	admit(at store.Lane, r **rule, later func()) bool
}

// gates are the gates of a queue, in the order in which they are called.
type gates []gate

// rule returns the rule of a lane, or nil if a gate leaves the lane out. For later see
// gate.
func (g gates) rule(at store.Lane, later func()) *rule {
	var r *rule
	for _, one := range g {
		if !one.admit(at, &r, later) {
			return nil
		}
	}
	return r
}

// handledKinds admits lanes of kinds that have a handler in this process. The rule
// of such a lane is its kind's.
type handledKinds map[string]*handler

func (h handledKinds) admit(at store.Lane, r **rule, _ func()) bool {
	if h[at.Kind] == nil {
		return false
	}
	*r = h[at.Kind].rule
	return true
}

// readablePolicies admits lanes whose tasks have no policy of their own, or a
// policy that this process can read. That policy is then the rule of the lane.
type readablePolicies struct {
	rules *ownRules
	queue string
}

func (p readablePolicies) admit(at store.Lane, r **rule, later func()) bool {
	if at.Policy == "" {
		return true
	}
	*r = p.rules.rule(p.queue, at, later)
	return *r != nil
}
