package falldue

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// events reports what happens in a worker and is not visible otherwise. It has
// one method for each event, which logs it.
type events struct{ log *slog.Logger }

func (e events) pollFailed(queue string, err error) {
	e.log.Warn("falldue: cannot poll", "queue", queue, "error", err)
}

func (e events) claimFailed(queue string, err error) {
	e.log.Warn("falldue: cannot claim", "queue", queue, "error", err)
}

// claimRefused reports tasks of a lane that the database does not let be claimed: the id
// of one, and how many there were since the last report.
func (e events) claimRefused(queue string, at store.Lane, id int64, tasks int, err error) {
	e.log.Error("falldue: the database refuses to let tasks be claimed; others are claimed", "queue", queue, "kind", at.Kind,
		"state", at.State, "priority", at.Priority, "attempts", at.Attempts, "task", id, "count", tasks, "error", err)
}

// corruptLane reports a lane whose first task has values that falldue never
// writes, because somebody edited the row.
func (e events) corruptLane(queue string, h store.Head, what string) {
	e.log.Error("falldue: a task holds values that falldue never writes", "what", what, "queue", queue, "kind", h.Kind,
		"state", h.State, "priority", h.Priority, "attempts", h.Attempts, "updated_at", store.Time(h.Anchor))
}

func (e events) unreadablePolicy(queue, kind string, err error) {
	e.log.Error("falldue: tasks wait because their policy cannot be read", "queue", queue, "kind", kind, "error", err)
}

// policiesRestored reports policies that were in the table, were lost, and are there
// again.
func (e events) policiesRestored(texts map[string]string) {
	for key, text := range texts {
		e.log.Warn("falldue: a policy was missing in the policies table and is stored again", "policy", key, "text", text)
	}
}

func (e events) keepFailed(err error) {
	e.log.Warn("falldue: cannot check that policies are stored", "error", err)
}

func (e events) policiesFailed(policies int, err error) {
	e.log.Error("falldue: cannot read the policies of tasks", "policies", policies, "error", err)
}

// beyondLimit reports tasks that became dead without running.
func (e events) beyondLimit(queue, kind, limit string, allowed, tasks int) {
	e.log.Error("falldue: tasks are dead: they have used more attempts than are allowed now", "queue", queue, "kind", kind,
		"count", tasks, "limit", limit, "allowed", allowed)
}

// died reports a task that is dead; why says what decided that.
func (e events) died(r *taskRun, why, text, stack string) {
	e.log.Error("falldue: a task is dead", e.failure(r, stack, "why", why, "error", text)...)
}

// attemptFailed reports a failure after which the task runs again.
func (e events) attemptFailed(r *taskRun, f *failure) {
	switch {
	case f.stack.Valid:
		e.log.Error("falldue: a handler panicked; the task runs again", e.failure(r, f.stack.V, "error", f.text)...)
	case f.Is(ErrTimeout):
		e.log.Warn("falldue: a handler timed out; the task runs again", e.failure(r, "", "error", f.text)...)
	default:
		if e.log.Enabled(context.Background(), slog.LevelDebug) {
			e.log.Debug("falldue: an attempt failed; the task runs again", e.failure(r, "", "error", f.text)...)
		}
	}
}

// failedAfterDoneTx reports a failure that changes nothing any more.
func (e events) failedAfterDoneTx(r *taskRun, f *failure) {
	e.log.Warn("falldue: a handler failed after its DoneTx had committed; the task is done", e.failure(r, f.stack.V, "error", f.text)...)
}

// failure returns the attributes of a failure.
func (events) failure(r *taskRun, stack string, more ...any) []any {
	list := append([]any{"task", r.claim.ID, "kind", r.claim.From.Kind, "queue", r.queue, "attempt", r.claim.Attempts}, more...)
	if stack != "" {
		list = append(list, "stack", stack)
	}
	return list
}

// stopping reports that a worker waits for its handlers before it stops, unless none run.
func (e events) stopping(handlers int, timeout time.Duration) {
	if handlers > 0 {
		e.log.Info("falldue: the worker stops and waits for its handlers", "count", handlers, "timeout", timeout)
	}
}

// stillRunning reports tasks whose handlers have not returned although the shutdown
// timeout is over. It names up to most of them.
func (e events) stillRunning(list []*taskRun, most int) {
	var ids []int64
	kinds := map[string]bool{}
	for i, r := range list {
		if kinds[r.claim.From.Kind] = true; i < most {
			ids = append(ids, r.claim.ID)
		}
	}
	e.log.Warn("falldue: the worker waits for handlers that have not returned", "count", len(list), "tasks", ids, "kinds", slices.Sorted(maps.Keys(kinds)))
}

// leaseLost reports a task whose claim ended with its lease, or because it was cancelled or
// deleted; when is "while it ran" or "before it was settled".
func (e events) leaseLost(c *store.Claim, by outcome, when string) {
	if by == outcomeCancelled {
		e.log.Info("falldue: a task was cancelled or deleted "+when, "task", c.ID, "kind", c.From.Kind, "attempt", c.Attempts)
		return
	}
	e.log.Warn("falldue: lease lost "+when, "task", c.ID, "kind", c.From.Kind, "attempt", c.Attempts)
}

func (e events) extendFailed(tasks int, err error) {
	e.log.Warn("falldue: cannot extend leases", "tasks", tasks, "error", err)
}

// hookPanicked reports a panic of a hook of the user's.
func (e events) hookPanicked(value any) {
	e.log.Error("falldue: a hook panicked", "error", value, "stack", string(debug.Stack()))
}

// extendRefused reports a lease that the database refuses to extend.
func (e events) extendRefused(c *store.Claim, err error) {
	e.log.Warn("falldue: cannot extend leases", "task", c.ID, "kind", c.From.Kind, "error", err)
}

func (e events) settleFailed(tasks int, err error) {
	e.log.Warn("falldue: cannot settle", "tasks", tasks, "error", err)
}

// settleRefused reports a task whose settlement the database refuses.
func (e events) settleRefused(c *store.Claim, err error) {
	e.log.Warn("falldue: cannot settle", "task", c.ID, "kind", c.From.Kind, "error", err)
}

// notSettled reports a run that was given up. The error is nil if the database was away.
func (e events) notSettled(c *store.Claim, err error) {
	e.log.Error("falldue: a task could not be settled before its lease ended; it will run again", "task", c.ID, "kind", c.From.Kind, "error", err)
}

func (e events) cleanFailed(queue, state string, err error) {
	e.log.Warn("falldue: cannot delete finished tasks", "queue", queue, "state", state, "error", err)
}

func (e events) permitsFailed(err error) {
	e.log.Warn("falldue: cannot delete permits of limits", "error", err)
}

func (e events) uniquesFailed(err error) {
	e.log.Warn("falldue: cannot delete unique keys that nobody holds", "error", err)
}

func (e events) flowsFailed(err error) {
	e.log.Warn("falldue: cannot look at tasks that run after others", "error", err)
}

func (e events) progressFailed(err error) {
	e.log.Warn("falldue: cannot write the progress of tasks", "error", err)
}

// overrideFailed reports an override of policies that the worker cannot obey.
func (e events) overrideFailed(subject string, err error) {
	e.log.Error("falldue: a policy that was set cannot be obeyed; the old one holds", "subject", subject, "error", err)
}

// pauseFailed reports a pause that the worker cannot obey.
func (e events) pauseFailed(subject string, err error) {
	e.log.Error("falldue: a pause cannot be obeyed; its tasks go on", "subject", subject, "error", err)
}

func (e events) changesFailed(err error) {
	e.log.Warn("falldue: cannot read pauses, policies and cancels", "error", err)
}

// announceFailed reports that the worker could not announce itself, once until it can again.
func (e events) announceFailed(err error) {
	e.log.Warn("falldue: cannot announce the worker in the table of workers; its work goes on", "error", err)
}

func (e events) listenFailed(err error) {
	e.log.Warn("falldue: cannot listen; the worker polls for tasks of other processes", "error", err)
}

// listens reports that the worker listens after a failure.
func (e events) listens() { e.log.Info("falldue: listening again") }

// overdue reports tasks that no worker takes.
func (e events) overdue(o Overdue) {
	e.log.Warn("falldue: tasks have been due for more than a minute, and no worker takes the first of them",
		"queue", o.Queue, "kind", o.Kind, "tasks", o.Tasks, "counted_up_to", maxOverdue, "due_since", o.DueSince)
}

func (e events) lookFailed(err error) {
	e.log.Warn("falldue: cannot look for overdue tasks", "error", err)
}

func (e events) kindWithoutQueue(kind, queue string) {
	e.log.Warn("falldue: this worker handles a kind and does not work on the queue of the kind", "kind", kind, "queue", queue)
}

// oneConnection reports a pool that cannot keep a connection for leases.
func (e events) oneConnection(lease time.Duration) {
	e.log.Warn("falldue: the pool has one connection; a handler that holds it for longer than a lease loses its task. "+
		"Let it have 2 or more (SetMaxOpenConns, or pool_max_conns of pgx), or give handlers another pool", "lease", lease)
}
