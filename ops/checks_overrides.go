package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

// checkOverrides lists the overrides and when they were set. It checks that the server computes their delays as Go
// does.
func (o *Ops) checkOverrides(ctx context.Context) ([]Finding, error) {
	known, err := o.Policies(ctx)
	if err != nil {
		return nil, err
	}
	policies := maps.Clone(known.announced)
	maps.Copy(policies, known.kinds)
	var findings []Finding
	for _, set := range known.overrides {
		formulas := map[string]sqlgen.Formula{}
		for kind, policy := range policies {
			if set.Names(falldue.TaskInfo{Queue: set.Queue, Kind: kind, Key: set.Key}) {
				add(formulas, set, "of kind "+kind, policy)
			}
		}
		add(formulas, set, "of the default", backoff.Policy{})
		before := len(findings)
		for part := range slices.Chunk(slices.Sorted(maps.Keys(formulas)), maxCheckedAtOnce) {
			found, err := o.differing(ctx, part, formulas)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
		}
		if _, handled := policies[set.Kind]; set.Kind != "" && !handled {
			findings = append(findings, Finding{
				Level: Attention, Text: fmt.Sprintf("the policy %q is set for %s, and no live worker handles the kind", OverrideName(set.Formula), set.Subject),
				Advice: "clear it if the kind's name is mistyped; otherwise run workers with a handler of the kind",
			})
		}
		if len(findings) == before {
			text := fmt.Sprintf("the policy %q has been set for %s since %s UTC", OverrideName(set.Formula), set.Subject, set.At.Format(time.DateTime))
			if set.Who != "" {
				text += " by " + set.Who
			}
			findings = append(findings, fine("%s", text)...)
		}
	}
	return findings, nil
}

// add adds the formula that an override makes of a policy.
func add(formulas map[string]sqlgen.Formula, o Override, of string, policy backoff.Policy) {
	formulas[fmt.Sprintf("the policy %q that is set for %s, %s", o.Formula, o.Subject, of)] = o.Formula.Of(policy).Delay()
}
