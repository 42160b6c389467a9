package control

import (
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Policies knows which policy is in effect for the lanes of a queue, and which lanes claims leave out. A lane
// that is left out costs a claim nothing, however many tasks it has.
type Policies struct {
	queue     string
	kinds     map[string]*CompiledPolicy // of kinds with a handler in this process
	changes   *ChangeReader
	perTask   *TaskPolicies
	overrides *Overrides
}

// NewPolicies returns the policies of a queue. kinds has the policies of the kinds that claims may take.
func NewPolicies(queue string, kinds map[string]*CompiledPolicy, changes *ChangeReader, perTask *TaskPolicies, overrides *Overrides) *Policies {
	return &Policies{queue: queue, kinds: kinds, changes: changes, perTask: perTask, overrides: overrides}
}

// Of returns the policy of a lane, or nil if claims leave the lane out: the lane is paused, its kind has no
// handler here, its per-task policy cannot be read, or a policy is not known yet. If later is not nil, an unknown
// policy is then read or computed, and later is called when claims may take tasks from the lane.
func (p *Policies) Of(at store.Lane, later func()) *CompiledPolicy {
	policy := p.kinds[at.Kind]
	if policy == nil || p.changes.Paused(p.queue, at) {
		return nil
	}
	if at.Policy != "" {
		if policy = p.perTask.PolicyOf(p.queue, at, later); policy == nil {
			return nil
		}
	}
	return p.overrides.PolicyOf(p.queue, at, policy, later)
}

// DelayOf returns the delay of a lane, and false if the delay is not known yet. All lanes are timed again
// when an override's delays become known.
func (p *Policies) DelayOf(at store.Lane) (time.Duration, bool) {
	policy := p.Of(at, func() {})
	if policy == nil {
		return 0, false
	}
	return policy.DelayIn(at), true
}

// Version counts the changes of the policies that are in effect.
func (p *Policies) Version() int64 { return p.overrides.Version.Load() }
