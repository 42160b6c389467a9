package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/sqlgen"
)

// checkServer describes the server.
func (o *Ops) checkServer(context.Context) ([]Finding, error) {
	s := o.store.Server()
	can := func(has bool, yes, no string) string {
		if has {
			return yes
		}
		return no
	}
	return fine("%s %s: %s, %s, %s", s.Name(), shortVersion(s.Version), can(s.Caps.SkipLocked, "skips locked rows", "does not skip locked rows"),
		can(s.Caps.WritableCTE, "claims with one statement", "claims in a transaction"), can(s.Caps.Notify, "can notify workers", "workers find tasks by polling")), nil
}

// shortVersion returns the part of a version that matters.
func shortVersion(version string) string {
	version = strings.TrimPrefix(version, "PostgreSQL ")
	short, _, _ := strings.Cut(version, " on ")
	return short
}

func (o *Ops) checkTables(ctx context.Context) ([]Finding, error) {
	if err := o.store.CheckTables(ctx); errors.Is(err, falldue.ErrNotMigrated) {
		return []Finding{{Level: Broken, Text: "the tables are missing or not up to date", Advice: `run "falldue migrate up", or Queue.Migrate; or set the prefix and the schema of your tables`}}, nil
	} else if err != nil {
		return nil, err
	}
	return fine("the tables exist and are up to date"), nil
}

func (o *Ops) checkClock(ctx context.Context) ([]Finding, error) {
	start := time.Now()
	now, err := o.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	return clockSkew(now.Sub(start.Add(took/2)), took), nil
}

// maxCheckedAtOnce is the greatest number of formulas that one statement checks.
const maxCheckedAtOnce = 50

// checkPolicies parses the per-task policies, and compares the delays of all policies
// that are known in Go and on the server.
func (o *Ops) checkPolicies(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	formulas := map[string]sqlgen.Formula{} // by the names under which they are reported
	own := 0
	err := o.store.AllPolicies(ctx, func(key, text string) error {
		own++
		policy, err := store.PolicyOf(map[string]string{key: text}, key)
		if err != nil {
			findings = append(findings, Finding{Level: Broken, Text: fmt.Sprintf("a per-task policy cannot be read: %v", err),
				Advice: "its tasks wait until workers can read it: upgrade the workers, or correct the text in the table of policies"})
			return nil
		}
		formulas["per-task policy "+key] = policy.Delay()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for kind, policy := range o.policies {
		formulas["the policy of kind "+strconv.Quote(kind)] = policy.Delay()
	}
	announced := o.announcedFormulas(ctx)
	maps.Copy(formulas, announced)
	formulas["the default policy"] = backoff.Policy{}.Delay()
	names := slices.Sorted(maps.Keys(formulas))
	for part := range slices.Chunk(names, maxCheckedAtOnce) {
		different, err := o.differing(ctx, part, formulas)
		findings = append(findings, different...)
		if err != nil {
			return findings, err
		}
	}
	if len(findings) > 0 {
		return findings, nil
	}
	return fine("Go and the server compute the same delays for %s, and for %s of kinds", words.Count(int64(own), "per-task policy"), words.Count(int64(len(o.policies)+len(announced))+1, "policy")), nil
}

// differing compares delays, for each policy by itself if they differ.
func (o *Ops) differing(ctx context.Context, names []string, formulas map[string]sqlgen.Formula) ([]Finding, error) {
	list := make([]sqlgen.Formula, len(names))
	for k, name := range names {
		list[k] = formulas[name]
	}
	err := o.store.CheckDelays(ctx, list)
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, err
	case len(names) == 1:
		return otherDelay(names[0], err), nil
	}
	var findings []Finding
	for k := range names {
		found, err := o.differing(ctx, names[k:k+1], formulas)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

const (
	// smallTable is the number of tasks up to which reading all of them is right.
	smallTable = 10_000
	// manyLanes is the number of lanes above which sweeps take long.
	manyLanes = 50_000
)

// checkClaims looks at the plans of the statements that workers of each queue send.
func (o *Ops) checkClaims(ctx context.Context) ([]Finding, error) {
	queues, err := o.Queues(ctx)
	if err != nil {
		return nil, err
	}
	rows, known, err := o.store.Fact(ctx, statements.FactRows)
	if err != nil {
		return nil, err
	}
	now, err := o.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	small := known && rows.Amount < smallTable
	var findings []Finding
	lanes := 0
	first := true
	for _, q := range queues {
		if q.Lanes == 0 {
			continue
		}
		lanes += q.Lanes
		whole, err := o.wholeTable(ctx, now, q.Name, first)
		first = false
		if err != nil {
			return findings, err
		}
		if len(whole) > 0 && !small {
			findings = append(findings, Finding{Level: Attention, Text: fmt.Sprintf("statements of workers for queue %s read a whole table: %s", q.Name, strings.Join(whole, ", ")),
				Advice: "update the statistics (ANALYZE the table of tasks), then look at \"falldue explain " + q.Name + "\""})
		}
	}
	if lanes > manyLanes {
		findings = append(findings, Finding{Level: Attention, Text: fmt.Sprintf("tasks wait in %d lanes (groups of tasks with the same delay), which makes polls slow", lanes), Advice: "use fewer kinds, keys, priorities or per-task policies in a queue"})
	}
	if len(findings) > 0 {
		return findings, nil
	}
	if small {
		return fine("%s with %s; with only about %s, any query plan is fast", words.Count(int64(len(queues)), "queue"), words.Count(int64(lanes), "lane"), words.Count(rows.Amount, "task")), nil
	}
	return fine("%s with %s, and claims read ranges of the index", words.Count(int64(len(queues)), "queue"), words.Count(int64(lanes), "lane")), nil
}

// wholeTable names the statements of workers of a queue whose plans read a whole table. Those
// that change tasks by their keys, which are the same for all queues, are among them only if
// changes is set; a user may lack the right to them.
func (o *Ops) wholeTable(ctx context.Context, now snapshot, queue string, changes bool) (whole []string, err error) {
	p, err := o.explainable(ctx, now, queue)
	if err != nil || len(p.Sources) == 0 {
		return nil, err
	}
	list, err := o.explainClaims(ctx, p)
	for _, plan := range list {
		err = cmp.Or(err, plan.Err)
	}
	if err == nil && changes {
		var more []Plan
		more, err = o.explainChanges(ctx, p)
		list = append(list, more...)
	}
	for _, plan := range list {
		if plan.WholeTable && !slices.Contains(whole, plan.Statement) {
			whole = append(whole, plan.Statement)
		}
	}
	return whole, err
}

func (o *Ops) checkOverdue(ctx context.Context) ([]Finding, error) {
	list, err := o.Overdue(ctx, 0)
	if err != nil {
		return nil, err
	}
	workers, err := o.Workers(ctx)
	if err != nil {
		workers = nil // checkWorkers reports this
	}
	var findings []Finding
	for _, late := range list {
		findings = append(findings, overdueTasks(late, Handlers(workers, late.Queue, late.Kind)))
	}
	if len(findings) == 0 {
		return fine("no task has been due for more than a minute"), nil
	}
	return findings, nil
}

const (
	// A task should have been retried within longAgo after its lease ended.
	longAgo = time.Hour
	// mostAbandoned is the greatest number of such tasks that are counted.
	mostAbandoned = 1000
)

func (o *Ops) checkLeases(ctx context.Context) ([]Finding, error) {
	n, err := o.store.Abandoned(ctx, longAgo, mostAbandoned)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return fine("no task has been left unclaimed for more than an hour after its lease ended"), nil
	}
	tasks := words.Count(n, "task")
	if n == mostAbandoned {
		tasks = "1000 or more tasks"
	}
	return []Finding{{Level: Attention, Text: fmt.Sprintf("the leases of %s ended more than an hour ago, and no worker has claimed them since", tasks),
		Advice: "the workers of these tasks died; the tasks are retried after their policies' delays: see \"falldue ls\" and ImmediateLostRetries"}}, nil
}

const (
	// veryLong is how long a run may last before it needs attention. No lease lasts
	// longer than a day.
	veryLong = 25 * time.Hour
	// namedRuns is how many of them are named.
	namedRuns = 5
)

// checkRuns looks for leases that never end.
func (o *Ops) checkRuns(ctx context.Context) ([]Finding, error) {
	list, err := o.store.EndlessRuns(ctx, veryLong, mostAbandoned)
	if err != nil {
		return nil, err
	}
	workers, err := o.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var late []Finding
	for _, w := range workers {
		for _, kind := range slices.Sorted(maps.Keys(w.Overtime)) {
			if w.Live() {
				late = append(late, Finding{Level: Attention, Text: fmt.Sprintf("kind %s on worker %s: %s", kind, w.ID, w.Overtime[kind]),
					Advice: "make the handler return when its context ends; until it returns, it occupies a slot, unless Config.StuckTimeout gives it up"})
			}
		}
	}
	if len(list) == 0 && len(late) == 0 {
		return fine("no task has run for more than a day, and no handler for longer than its timeout"), nil
	}
	if len(list) == 0 {
		return late, nil
	}
	tasks, named := words.Count(int64(len(list)), "task"), []string{}
	if len(list) == mostAbandoned {
		tasks = "1000 or more tasks"
	}
	for _, r := range list[:min(len(list), namedRuns)] {
		named = append(named, fmt.Sprintf("%d on %s", r.ID, r.Worker))
	}
	return append(late, Finding{Level: Attention, Text: fmt.Sprintf("running for more than a day, or with a lease that long: %s (%s)", tasks, strings.Join(named, ", ")),
		Advice: "if their handlers hang, \"falldue cancel\" ends their contexts; KindConfig.Timeout ends them automatically"}), nil
}

// checkDeadRows looks for rows that the server has not cleaned up.
func (o *Ops) checkDeadRows(ctx context.Context) ([]Finding, error) {
	dead, known, err := o.store.Fact(ctx, statements.FactDeadRows)
	if err != nil {
		return nil, err
	}
	if known {
		live, _ := strconv.ParseInt(dead.Detail, 10, 64)
		return deadRows(dead.Amount, live), nil
	}
	free, known, err := o.store.Fact(ctx, statements.FactFreePages)
	if err != nil || !known {
		return nil, err
	}
	all, _ := strconv.ParseInt(free.Detail, 10, 64)
	return freePages(free.Amount, all), nil
}

func (o *Ops) checkHistory(ctx context.Context) ([]Finding, error) {
	history, known, err := o.store.Fact(ctx, statements.FactHistory)
	if err != nil || !known {
		return nil, err
	}
	return historyOf(history.Amount), nil
}

func (o *Ops) checkTransactions(ctx context.Context) ([]Finding, error) {
	if _, ok := statements.Facts(o.store.Server())[statements.FactOldestTransaction]; !ok {
		return nil, nil
	}
	oldest, known, err := o.store.Fact(ctx, statements.FactOldestTransaction)
	if err != nil {
		return nil, err
	}
	if !known {
		return fine("no transaction is older than a minute"), nil
	}
	return transactionOf(store.Duration(oldest.Amount), oldest.Detail), nil
}
