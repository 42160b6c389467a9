package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

const (
	// One enqueue in retryEvery retries the dead jobs of one of the last keptGraphs graphs, in
	// runs that have limited jobs, too.
	retryEvery = 15
	keptGraphs = 20
)

// graph is a graph of jobs of which some have its name as their key. Those can be retried.
type graph struct {
	name string
	jobs []string // their keys
}

// keep keeps a graph to retry its dead jobs later.
func (e *enqueuer) keep(g graph) {
	if len(g.jobs) > 0 {
		e.graphs = append(e.graphs, g)
	}
	e.graphs = e.graphs[max(len(e.graphs)-keptGraphs, 0):]
}

// retryGraph retries the dead jobs of a graph, and records which were dead.
func (e *enqueuer) retryGraph(ctx context.Context) error {
	g := e.graphs[e.dice.IntN(len(e.graphs))]
	e.write(Retrying, g.jobs, make([]int64, len(g.jobs))) // others may die before the retry
	filter := ops.Filter{Key: g.name, State: falldue.StateDead}
	page, err := ops.New(e.queue).Tasks(ctx, filter)
	if err != nil {
		return err
	}
	dead := make([]Event, len(page.Tasks))
	for i, t := range page.Tasks {
		row, err := rowOf(t)
		if err != nil {
			return err
		}
		dead[i] = Event{What: Retried, Key: row.Key, ID: t.ID, Fence: t.Fence}
	}
	report, err := ops.New(e.queue).RetryMany(ctx, filter)
	if err == nil && e.sure(report) && len(dead) > 0 {
		e.history.Write(dead...)
	}
	return err
}

// sure reports whether a change has changed all jobs that it was to change.
func (e *enqueuer) sure(report ops.BulkReport) bool {
	// A node of a cluster may not see yet what another one has committed.
	blind := strings.Contains(e.DSN, "wsrep_sync_wait=0")
	return report.Complete && report.Left+report.Failed == 0 && !blind
}

// notRunAgain returns the jobs that did not run again after they were retried.
func notRunAgain(lives map[string]*life) (list []finding) {
	for key, l := range lives {
		for _, e := range l.retries {
			if text := l.endedBy(e.Fence); text != "" {
				list = append(list, finding{key, text})
				break
			}
		}
	}
	return list
}

// endedBy returns what is wrong if a job that was dead after a claim, and was retried, has ended
// without another claim, or "".
func (l *life) endedBy(fence int64) string {
	if len(l.rows) != 1 || !slices.Contains([]string{"done", "dead"}, l.rows[0].State) || l.rows[0].Fence > fence {
		return ""
	}
	return fmt.Sprintf("it was dead after claim %d, was retried, and did not run again", fence)
}
