package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// rule is the policy of a kind.
type rule struct {
	kind   string
	policy backoff.Policy
}

// row is a task as the watcher saw it last.
type row struct {
	falldue.TaskInfo
	// due is when it runs next, if it waits.
	due time.Time
	// late is how long after it fell due its latest attempt began; negative
	// before the first, and where the watcher blinked.
	late time.Duration
	// changed says that it is not as it was at the look before.
	changed bool
}

func (r row) ended() bool { return r.State != falldue.Open && r.State != falldue.Snoozed }
func (r row) runs() bool  { return !r.ended() && r.ClaimedBy != "" }
func (r row) waits() bool { return !r.ended() && r.ClaimedBy == "" }

// due is when a task that waits runs next: a moment in its row, and what its
// policy says to its attempts. Nothing else is stored, so a new policy would
// move every task that waits.
func due(t falldue.TaskInfo, p backoff.Policy) time.Time {
	if t.State == falldue.Snoozed { // told when: by Snooze, or RetryAfter
		return t.UpdatedAt
	}
	delay, _ := p.Wait(int64(t.Attempts))
	return t.UpdatedAt.Add(delay)
}

// watcher follows the tasks from outside, by reading the table.
type watcher struct {
	queue *falldue.Queue
	every time.Duration
	rules []rule
	show  func(rows []row) // is given all tasks, kind by kind, at each look
	rows  map[int64]row
	lates []time.Duration // of all attempts
}

func newWatcher(queue *falldue.Queue, hour time.Duration, out io.Writer, rules []rule) *watcher {
	w := &watcher{queue: queue, every: max(hour/20, 5*time.Millisecond), rules: rules, rows: map[int64]row{}}
	if isTerminal(out) {
		w.show = newScreen(out, hour, rules).show
	} else {
		w.show = newLines(out, rules).show
	}
	return w
}

// untilAllEnded looks again and again, until no task waits or runs any more, or
// ctx ends.
func (w *watcher) untilAllEnded(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		rows, err := w.look(ctx)
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

// look reads the tasks, shows them, and returns them kind by kind.
func (w *watcher) look(ctx context.Context) ([]row, error) {
	tasks, err := w.queue.Tasks(ctx, falldue.TaskFilter{})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(tasks))
	for i, t := range tasks {
		rows[i] = w.see(t)
		w.rows[t.ID] = rows[i]
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(w.place(a.Kind), w.place(b.Kind)) })
	w.show(rows)
	return rows, nil
}

// see compares a task with how it was at the look before.
func (w *watcher) see(t falldue.TaskInfo) row {
	was, known := w.rows[t.ID]
	if !known { // it waited since it was enqueued, however briefly
		was = row{late: -1, due: t.CreatedAt}
		was.State = falldue.Open
	}
	now := row{TaskInfo: t, late: was.late, due: due(t, w.rules[w.place(t.Kind)].policy)}
	now.changed = !known || t.State != was.State || t.Fence != was.Fence || t.ClaimedBy != was.ClaimedBy
	if t.Fence != was.Fence { // it was claimed since
		now.late = -1
		if t.Fence == was.Fence+1 && was.waits() {
			now.late = max(t.AttemptedAt.Sub(was.due), 0)
			w.lates = append(w.lates, now.late)
		}
	}
	return now
}

// place is the place of a kind among the rules.
func (w *watcher) place(kind string) int {
	return slices.IndexFunc(w.rules, func(r rule) bool { return r.kind == kind })
}
