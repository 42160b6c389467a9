package falldue

import (
	"log/slog"

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
		"state", at.State, "priority", at.Priority, "attempts", at.Attempts, "task", id, "tasks", tasks, "error", err)
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

// leaseLost reports a task whose lease was lost; when is "while the task ran" or
// "before the task was settled".
func (e events) leaseLost(c *store.Claim, when string) {
	e.log.Warn("falldue: lease lost "+when, "task", c.ID, "kind", c.From.Kind, "attempt", c.Attempts)
}

func (e events) extendFailed(tasks int, err error) {
	e.log.Warn("falldue: cannot extend leases", "tasks", tasks, "error", err)
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
	e.log.Warn("falldue: tasks of a kind wait in a queue that this worker does not work on", "kind", kind, "queue", queue)
}
