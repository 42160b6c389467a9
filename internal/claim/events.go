package claim

import (
	"log/slog"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// events logs what happens while tasks are found and claimed.
// It has one method for each log line.
type events struct{ log *slog.Logger }

func (e events) pollFailed(queue string, err error) {
	e.log.Warn("falldue: cannot poll for tasks", "queue", queue, retry.Failed(err))
}

// answers reports that the database answers after an outage.
func (e events) answers() { e.log.Info("falldue: the database answers again") }

func (e events) claimFailed(queue string, err error) {
	e.log.Warn("falldue: cannot claim tasks", "queue", queue, retry.Failed(err))
}

// claimRefused reports tasks of a lane whose claims the database refuses: the id of one of them, and how
// many refusals there were since the last report.
func (e events) claimRefused(queue string, at store.Lane, id int64, tasks int, err error) {
	e.log.Error("falldue: the database refuses the claims of some tasks; other tasks are claimed", "queue", queue, "kind", at.Kind,
		"state", at.State, "priority", at.Priority, "attempts", at.Attempts, "task", id, "count", tasks, "error", err)
}

// corruptLane reports a lane whose first task has values that falldue never writes: the row was edited.
func (e events) corruptLane(queue string, h store.Head, what string) {
	e.log.Error("falldue: the row of a task has values that falldue never writes", "what", what, "queue", queue, "kind", h.Kind,
		"state", h.State, "priority", h.Priority, "attempts", h.Attempts, "updated_at", store.Time(h.Anchor))
}

// tasksExpired reports tasks that have expired without a claim: under a policy, or by their own times if within is 0.
func (e events) tasksExpired(queue, kind string, within time.Duration, tasks int) {
	args := []any{"queue", queue, "kind", kind, "count", tasks}
	if within > 0 {
		args = append(args, "within", within)
	}
	e.log.Info("falldue: tasks were cancelled because they had not started in time", args...)
}

func (e events) expireFailed(queue, kind string, err error) {
	e.log.Warn("falldue: cannot cancel expired tasks", "queue", queue, "kind", kind, retry.Failed(err))
}
