package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

// onDeath is what a job does if one after which it runs is dead or cancelled.
type onDeath string

// The choices of package flow.
const (
	waitsForRetry onDeath = ""
	isCancelled   onDeath = "cancel"
	runsAnyway    onDeath = "run"
	runsAtFirst   onDeath = "first" // at the first death, and not at all without one
)

// choices are the choices for one job that runs after others. Few wait for a retry, for which
// all that runs after them waits, too.
var choices = []onDeath{waitsForRetry, waitsForRetry, isCancelled, isCancelled, runsAnyway, runsAnyway, runsAnyway, runsAtFirst}

// One job of a chain or a graph in diesEvery is never done.
const diesEvery = 6

// members returns the keys of the jobs after which a job runs.
func (j Job) members() (keys []string) {
	for _, number := range j.After {
		keys = append(keys, keyOf(processOf(j.Key), number))
	}
	return keys
}

// asBatch enqueues jobs of which the last one runs when the others have ended, in any way.
func (e *enqueuer) asBatch(ctx context.Context, params []falldue.EnqueueParams, keys []string) error {
	last := len(params) - 1
	job := Job{Key: keys[last], OnDeath: runsAnyway}
	for i := range last {
		job.After = append(job.After, numberOf(keys[i]))
	}
	params[last] = e.kinds.plain.Params(job)
	return e.enqueueFlow(ctx, flow.Batch(params[:last]...).Then(params[last], flow.RunAnyway()), keys)
}

// asGraph enqueues jobs as a chain, or as a graph in which a job runs after up to three others.
// Jobs that run after others are of no sequence: they have no place in it while they wait.
func (e *enqueuer) asGraph(ctx context.Context, params []falldue.EnqueueParams, keys []string) error {
	chain := e.dice.IntN(2) == 0
	var f flow.Flow
	var nodes []flow.Node
	g := graph{name: fmt.Sprint(e.Name, "/graph", e.made)}
	opts := falldue.EnqueueOptions{Key: g.name}
	for i, key := range keys {
		job := Job{Key: key, Dies: e.dice.IntN(diesEvery) == 0}
		var after []flow.Node
		switch {
		case chain && i > 0:
			after = nodes[i-1:]
		case !chain:
			for range min(e.dice.IntN(4), i) {
				after = append(after, nodes[e.dice.IntN(i)])
			}
			slices.SortFunc(after, func(a, b flow.Node) int { return a.Index() - b.Index() })
			after = slices.Compact(after)
		}
		if len(after) == 0 {
			if job.Dies || params[i].Kind() == plainName {
				params[i], g.jobs = e.kinds.plain.Params(job, opts), append(g.jobs, key)
			}
			nodes = append(nodes, f.Add(params[i]))
			continue
		}
		for _, n := range after {
			job.After = append(job.After, numberOf(keys[n.Index()]))
		}
		job.OnDeath = choices[e.dice.IntN(len(choices))]
		options := []flow.Option{flow.After(after...)}
		switch job.OnDeath {
		case isCancelled:
			options = append(options, flow.CancelOnDeath())
		case runsAnyway:
			options = append(options, flow.RunAnyway())
		case runsAtFirst:
			options = append(options, flow.AtFirstDeath())
		}
		kind := e.kinds.plain
		if numberOf(key)%transactionalEvery == 0 {
			kind = e.kinds.transactional
		}
		nodes = append(nodes, f.Add(kind.Params(job, opts), options...))
		g.jobs = append(g.jobs, key)
	}
	e.keep(g)
	return e.enqueueFlow(ctx, &f, keys)
}

func (e *enqueuer) enqueueFlow(ctx context.Context, f *flow.Flow, keys []string) error {
	ids, err := f.Enqueue(ctx, e.queue)
	if err != nil {
		return err
	}
	e.write(Acknowledged, keys, ids)
	return nil
}

// fate is what is to become of a task that runs after others.
type fate int

const (
	unknown fate = iota // the row of another one is missing, which is found by itself
	runs
	staysBlocked
	endsCancelled
)

// fateOf returns what is to become of a task that runs after others, by how those have ended.
func fateOf(r Row, rowOf func(key string) (Row, bool)) fate {
	pending, dead, cancelled := false, false, false
	for _, key := range r.After {
		m, ok := rowOf(key)
		if !ok {
			return unknown
		}
		pending = pending || m.State != "done" && m.State != "dead" && m.State != "cancelled"
		dead = dead || m.State == "dead"
		cancelled = cancelled || m.State == "cancelled"
	}
	switch failed := dead || cancelled; {
	case r.OnDeath == isCancelled && failed, r.OnDeath == runsAtFirst && !dead && !pending:
		return endsCancelled
	case r.OnDeath == runsAtFirst && dead, !pending && !failed, !pending && r.OnDeath == runsAnyway:
		return runs
	}
	return staysBlocked
}

// unfinished returns how many tasks wait or run, but for those that are to stay blocked.
func unfinished(ctx context.Context, q *falldue.Queue) (n int64, err error) {
	table, err := readTasks(ctx, q)
	rows := make(map[string]Row, len(table))
	for _, r := range table {
		rows[r.Key] = r
	}
	for _, r := range table {
		fate := fateOf(r, func(key string) (Row, bool) { m, ok := rows[key]; return m, ok })
		switch falldue.State(r.State) {
		case falldue.StateOpen, falldue.StateSnoozed:
			n++
		case falldue.StateBlocked:
			if fate == runs || fate == endsCancelled {
				n++
			}
		}
	}
	return n, err
}

// A finding is what is wrong with a task.
type finding struct{ key, text string }

// inFlows calls f for each task that runs after others, with its only row, what is to become
// of it, and the others.
func inFlows(lives map[string]*life, f func(l *life, r Row, to fate, members []*life)) {
	for _, l := range lives {
		if len(l.rows) != 1 || len(l.rows[0].After) == 0 {
			continue
		}
		r, members := l.rows[0], []*life{}
		to := fateOf(r, func(key string) (Row, bool) {
			m := lives[key]
			if m == nil || len(m.rows) != 1 {
				return Row{}, false
			}
			members = append(members, m)
			return m.rows[0], true
		})
		// What a retry comes too late for depends on when the others had died.
		tooLate := r.OnDeath != waitsForRetry && slices.ContainsFunc(members, func(m *life) bool { return m.retried })
		if to != unknown && !tooLate {
			f(l, r, to, members)
		}
	}
}

// tooEarly returns the tasks that ran before those had ended after which they were to run, or
// that were not to run.
func tooEarly(lives map[string]*life) (list []finding) {
	inFlows(lives, func(l *life, r Row, to fate, members []*life) {
		first, ran := int64(0), len(l.started) > 0
		if ran {
			first = l.started[0].At
		}
		switch {
		case !ran && r.Fence == 0:
			return
		case to == staysBlocked:
			list = append(list, finding{l.key, "it ran although it was to stay blocked"})
			return
		case to == endsCancelled:
			list = append(list, finding{l.key, "it ran although it was to be cancelled"})
			return
		}
		deaths := 0
		for _, m := range members {
			began := ran && first < m.lastRun() || !r.FirstAttemptedAt.IsZero() && r.FirstAttemptedAt.Before(m.rows[0].EndedAt)
			switch {
			case r.OnDeath != runsAtFirst && began:
				list = append(list, finding{l.key, "it ran before " + m.key + " had ended, after which it was to run"})
				return
			case m.rows[0].State == "dead" && !began:
				deaths++
			}
		}
		if r.OnDeath == runsAtFirst && deaths == 0 {
			list = append(list, finding{l.key, "it ran before the first death"})
		}
	})
	return list
}

// forgotten returns the tasks that did not run although they were to run, and those that were
// not cancelled although they were to be.
func forgotten(lives map[string]*life) (list []finding) {
	want := map[fate][]string{runs: {"done", "dead"}, staysBlocked: {"blocked"}, endsCancelled: {"cancelled"}}
	inFlows(lives, func(l *life, r Row, to fate, _ []*life) {
		early := to != runs && (r.Fence > 0 || len(l.started) > 0)
		if !early && !slices.Contains(want[to], r.State) {
			list = append(list, finding{l.key, "it ended as " + r.State + ", and was to be " + strings.Join(want[to], " or ") + " by how those ended after which it runs"})
		}
	})
	return list
}
