package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/demo"
	"github.com/falldue/falldue/ops"
)

// rule is the policy of a kind.
type rule struct {
	kind   string
	policy backoff.Policy
}

// row is a task as the watcher read it last.
type row struct {
	falldue.TaskInfo
	// due is when the task runs next, if it waits.
	due time.Time
	// late is the time from when the task was due to the start of its latest
	// attempt. It is negative before the first attempt, and if the watcher
	// missed an attempt.
	late time.Duration
	// changed reports whether the task has changed since the last refresh.
	changed bool
}

func (r row) ended() bool   { return r.State != falldue.StateOpen && r.State != falldue.StateSnoozed }
func (r row) running() bool { return !r.ended() && r.ClaimedBy != "" }
func (r row) waiting() bool { return !r.ended() && r.ClaimedBy == "" }

// due returns when a waiting task runs next: the time in its row plus the delay of
// its policy. The delay is not stored, so a new policy would apply to all waiting
// tasks concurrently.
func due(t falldue.TaskInfo, p backoff.Policy) time.Time {
	if t.State == falldue.StateSnoozed { // Snooze or RetryAfter has set the time
		return t.UpdatedAt
	}
	delay, _ := p.Wait(int64(t.Attempts))
	return t.UpdatedAt.Add(delay)
}

// watcher follows the tasks by reading the table.
type watcher struct {
	queue    *falldue.Queue
	every    time.Duration
	rules    []rule
	show     func(rows []row) // displays all tasks, ordered by kind, at each refresh
	rows     map[int64]row
	lateness []time.Duration // of all attempts
}

func newWatcher(queue *falldue.Queue, hour time.Duration, out io.Writer, rules []rule) *watcher {
	w := &watcher{queue: queue, every: max(hour/20, 5*time.Millisecond), rules: rules, rows: map[int64]row{}}
	if demo.IsTerminal(out) {
		w.show = newScreen(out, hour, rules).show
	} else {
		w.show = newLines(out, rules).show
	}
	return w
}

// untilAllEnded refreshes periodically until all tasks have ended, or ctx ends.
func (w *watcher) untilAllEnded(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		rows, err := w.refresh(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return !r.ended() }) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh reads the tasks, displays them, and returns them ordered by kind.
func (w *watcher) refresh(ctx context.Context) ([]row, error) {
	page, err := ops.New(w.queue).Tasks(ctx, ops.Filter{})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(page.Tasks))
	for i, t := range page.Tasks {
		rows[i] = w.compare(t)
		w.rows[t.ID] = rows[i]
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(w.indexOf(a.Kind), w.indexOf(b.Kind)) })
	w.show(rows)
	return rows, nil
}

// compare returns the row of a task, compared with its row at the last refresh.
func (w *watcher) compare(t falldue.TaskInfo) row {
	was, known := w.rows[t.ID]
	if !known { // it has waited since it was enqueued
		was = row{late: -1, due: t.CreatedAt}
		was.State = falldue.StateOpen
	}
	now := row{TaskInfo: t, late: was.late, due: due(t, w.rules[w.indexOf(t.Kind)].policy)}
	now.changed = !known || t.State != was.State || t.Fence != was.Fence || t.ClaimedBy != was.ClaimedBy
	if t.Fence != was.Fence { // it has been claimed
		now.late = -1
		if t.Fence == was.Fence+1 && was.waiting() {
			now.late = max(t.AttemptedAt.Sub(was.due), 0)
			w.lateness = append(w.lateness, now.late)
		}
	}
	return now
}

// indexOf returns the index of the rule of a kind.
func (w *watcher) indexOf(kind string) int {
	return slices.IndexFunc(w.rules, func(r rule) bool { return r.kind == kind })
}
