package ops

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Plan is a statement with which a worker looks for due tasks, and how the server runs it.
type Plan struct {
	SQL string
	// Lines is the server's plan, by lines. MySQL, MariaDB and TiDB return columns, which
	// are side by side here.
	Lines []string
	// WholeTable reports whether the plan reads a whole table or a whole index. That is
	// right while there are few tasks, and what makes claims slow when there are many.
	WholeTable bool
}

// explainedLanes is the number of lanes from which the explained claim takes tasks.
const explainedLanes = 100

// Explain returns the statements with which a worker claims from the lanes that a queue has
// now, with the server's plans: one statement on PostgreSQL, elsewhere one for each policy.
// It claims nothing, but needs the right to. Lanes whose policies are not known have the
// default policy in it. There is no plan if no task waits.
func (i *Inspector) Explain(ctx context.Context, queue string) ([]Plan, error) {
	heads, err := i.store.NewLaneFinder(queue).Find(ctx)
	if err != nil {
		return nil, err
	}
	known, err := i.Policies(ctx, policyKeys(heads)...)
	if err != nil {
		return nil, err
	}
	params := store.ClaimParams{Queue: queue, Worker: "explain", Lease: time.Minute, Limit: explainedLanes}
	slices.SortStableFunc(heads, func(a, b store.Head) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, h := range heads {
		if h.Corrupt != nil || len(params.Sources) == explainedLanes {
			continue
		}
		policy, ok := known.Of(taskIn(queue, h.Lane))
		if !ok {
			policy = backoff.Policy{}
		}
		params.Sources = append(params.Sources, store.Source{
			Lane: h.Lane, Since: h.Anchor, Delay: store.NewDelay(policy.Delay()), Running: string(falldue.Open), MaxAttempts: policy.MaxAttempts(),
		})
	}
	if len(params.Sources) == 0 {
		return nil, nil
	}
	explained, err := i.store.ExplainClaim(ctx, params)
	if err != nil {
		return nil, err
	}
	whole, err := regexp.Compile(i.store.Server().Caps.WholeTable)
	if err != nil {
		return nil, fmt.Errorf("ops: Caps.WholeTable: %w", err)
	}
	plans := make([]Plan, len(explained))
	for k, e := range explained {
		plans[k] = Plan{SQL: e.SQL, Lines: e.Plan, WholeTable: slices.ContainsFunc(e.Plan, whole.MatchString)}
	}
	return plans, nil
}
