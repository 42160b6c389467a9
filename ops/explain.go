package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// Plan is a statement of a worker, and how the server runs it.
type Plan struct {
	// Statement is the purpose of the statement:
	//
	//	sweep                 finds the lanes of the queue
	//	next_lane             finds the next lane of the queue, on MySQL, MariaDB and TiDB
	//	look                  finds the first task of each known lane
	//	claim                 claims from lanes without limits; on engines other than PostgreSQL
	//	                      it finds the tasks for take, with a statement for each policy
	//	claim_in_slot         a large claim on PostgreSQL
	//	read_permits          reads what limits admit
	//	claim_with_limits     finds due tasks in lanes with limits
	//	claim_in_order        finds the next task of a sequence, see [falldue.InOrder]
	//	take_permits          gives permits of limits to claims
	//	take                  claims the tasks that were found
	//	extend                extends leases
	//	settle_done           deletes tasks that have succeeded
	//	settle_alike          ends claims with the same outcome, such as claims of done tasks that are kept
	//	settle_each           ends claims with different outcomes
	Statement string
	SQL       string
	// Lines are the lines of the server's plan. MySQL, MariaDB and TiDB return a table, and a line is then a row of it.
	Lines []string
	// WholeTable reports whether the plan reads the whole table of tasks or a whole index of it. Such a plan is right
	// while there are few tasks, but makes workers slow when there are many. It is always false for the statement look on
	// TiDB, which runs the subqueries of a statement instead of explaining them.
	WholeTable bool
	// Err is the reason why the server does not explain the statement, such as a missing permission, or nil.
	Err error
}

// explainedLanes is the number of lanes from which the explained claims take tasks.
const explainedLanes = 100

// Explain returns the statements that workers of a queue send for the queue's current lanes, with the server's plans.
// It leaves out enqueues, and the additional statements for some tasks, such as unique tasks, tasks of flows and tasks
// with progress. Explain changes and locks nothing, but servers require the permissions of the explained statements.
// Lanes with an unknown policy are shown with the default policy, and limits come from live workers. There is no plan
// if no task waits.
func (o *Ops) Explain(ctx context.Context, queue string) ([]Plan, error) {
	now, err := o.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	p, err := o.explainable(ctx, now, queue)
	if err != nil || len(p.Sources) == 0 {
		return nil, err
	}
	plans, err := o.explainClaims(ctx, p)
	if err != nil {
		return nil, err
	}
	changes, err := o.explainChanges(ctx, p)
	return append(plans, changes...), err
}

// explainClaims returns the plans of the statements that find and claim tasks.
func (o *Ops) explainClaims(ctx context.Context, p store.ClaimParams) ([]Plan, error) {
	return plans(o.store.ExplainClaims(ctx, p))
}

// explainChanges returns the plans of the statements that change tasks by their keys.
func (o *Ops) explainChanges(ctx context.Context, p store.ClaimParams) ([]Plan, error) {
	limited := slices.ContainsFunc(p.Sources, func(from store.Source) bool { return len(from.Limits) > 0 })
	return plans(o.store.ExplainChanges(ctx, p, limited))
}

func plans(explained []store.Explained, err error) ([]Plan, error) {
	list := make([]Plan, len(explained))
	for k, e := range explained {
		list[k] = Plan{Statement: e.Name, SQL: e.SQL, Lines: e.Plan, WholeTable: e.WholeTable, Err: e.Err}
	}
	return list, err
}

// explainable returns a claim from the lanes that a queue has now. It has no sources if no task
// waits.
func (o *Ops) explainable(ctx context.Context, now snapshot, queue string) (store.ClaimParams, error) {
	params := store.ClaimParams{Queue: queue, Worker: "explain", Lease: time.Minute, Limit: explainedLanes}
	heads, err := o.store.NewLaneFinder().FindAll(ctx, queue)
	if err != nil {
		return params, err
	}
	if err := now.readOwn(ctx, o.store, policyKeys(heads)); err != nil {
		return params, err
	}
	slices.SortStableFunc(heads, func(a, b store.Head) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, h := range heads {
		if h.Corrupt != nil || len(params.Sources) == explainedLanes {
			continue
		}
		policy, ok := now.Of(taskIn(queue, h.Lane))
		if !ok {
			policy = backoff.Policy{}
		}
		since := h.Anchor
		if due, ok := now.dueIn(queue, h.Lane, store.Time(h.Anchor), store.Time(h.Now)); !ok || due.After(store.Time(h.Now)) {
			since = 0 // nothing could be due after the anchor, and servers plan for that
		}
		source := store.Source{Lane: h.Lane, Since: since, Delay: store.NewDelay(policy.Delay()), Running: string(falldue.StateOpen), MaxAttempts: policy.MaxAttempts()}
		for _, l := range now.limitsOf(queue, h.Lane)[0].Limits { // a claim applies the limits of its worker
			source.Limits = append(source.Limits, l.Limit)
		}
		params.Sources = append(params.Sources, source)
	}
	return params, nil
}
