package dash

import (
	"cmp"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// policiesView is what the page of policies shows.
type policiesView struct {
	Kinds   []kindPolicy
	Pulse   ops.Pulse
	Now     time.Time
	Age     time.Duration
	Refused []ops.RefusedOverride
	History []ops.Override
	Trouble *trouble
}

// kindPolicy is a kind and its policy.
type kindPolicy struct {
	Kind string
	// Code is the code's policy, and Policy is the policy in effect. Both are "" if unknown.
	Code, Policy string
	Override     *ops.Override
	Releases     int // how many policies workers have, if several
	Pace         float64
	Failing      float64 // failed attempts a second
	Waiting      int64
}

// Uptake is which workers apply an override.
func (v policiesView) Uptake(o ops.Override) uptake { return appliedBy(o, v.Pulse.Workers) }

// shownHistory is how many changes of policies the page shows.
const shownHistory = 30

func policiesPage(in *request) (page, error) {
	ctx := in.r.Context()
	var p reading[ops.Pulse]
	var history reading[[]ops.Override]
	var counts reading[[]ops.Count]
	together(func() { p = in.h.reads.pulse.get(ctx) }, func() { history = in.h.reads.history.get(ctx) }, func() { counts = in.h.reads.counts.get(ctx) })
	v := policiesView{Pulse: p.Value, Now: p.Value.At, Age: p.Age, Refused: ops.RefusedOverrides(p.Value.Workers), Trouble: troubleOf(cmp.Or(p.Err, history.Err, counts.Err))}
	v.History = slices.Clone(history.Value)
	slices.Reverse(v.History)
	v.History = v.History[:min(len(v.History), shownHistory)]
	_, kinds := names(p.Value)
	pace := ops.PaceOf(p.Value.Workers)
	for _, kind := range kinds {
		v.Kinds = append(v.Kinds, in.h.kindPolicy(kind, p.Value, counts.Value, pace))
	}
	return page{Title: "Policies", Nav: "policies", Live: true, Regions: []region{{ID: "policies", Template: "policies", Data: v}}}, nil
}

// kindPolicy returns what is known of the policy of a kind.
func (h *Handler) kindPolicy(kind string, p ops.Pulse, counts []ops.Count, pace ops.Pace) kindPolicy {
	k := kindPolicy{Kind: kind, Pace: pace.Of(kind), Releases: len(p.Policies.Releases(kind))}
	t := falldue.TaskInfo{Kind: kind}
	if code, known := p.Policies.Code(t); known {
		k.Code = code.String()
	}
	if policy, known := p.Policies.Of(t); known {
		k.Policy = policy.String()
	}
	if o, ok := p.Policies.Override(t); ok {
		k.Override = &o
	}
	for _, c := range counts {
		if c.Kind == kind && (c.State == falldue.StateOpen || c.State == falldue.StateSnoozed) {
			k.Waiting += c.Tasks
		}
	}
	for _, w := range p.Workers {
		if w.RecentTime > 0 {
			k.Failing += float64(w.Recent[kind].Failed) / w.RecentTime.Seconds()
		}
	}
	return k
}
