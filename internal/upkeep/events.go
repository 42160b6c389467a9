package upkeep

import (
	"log/slog"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/retry"
)

// events logs failures of a worker's background work.
// It has one method for each log line.
type events struct{ log *slog.Logger }

// policiesRestored reports policies that the table had lost and has again.
func (e events) policiesRestored(texts map[string]string) {
	for key, text := range texts {
		e.log.Warn("falldue: a policy was missing in the policies table, and has been restored", "policy", key, "text", text)
	}
}

func (e events) keepFailed(err error) {
	e.log.Warn("falldue: cannot check that policies are stored", retry.FailedIn("policies", err))
}

func (e events) cleanFailed(queue, state string, err error) {
	e.log.Warn("falldue: cannot delete finished tasks", "queue", queue, "state", state, retry.FailedIn("cleaner", err))
}

func (e events) permitsFailed(err error) {
	e.log.Warn("falldue: cannot delete unused permits of limits", retry.FailedIn("cleaner", err))
}

func (e events) uniquesFailed(err error) {
	e.log.Warn("falldue: cannot delete unique keys that no task holds", retry.FailedIn("cleaner", err))
}

func (e events) flowsFailed(err error) {
	e.log.Warn("falldue: cannot read the dependencies of tasks", retry.FailedIn("flows", err))
}

// announceFailed reports that the worker's heartbeat could not be written. The log has one line until it can again.
func (e events) announceFailed(err error, again bool) {
	e.log.Warn("falldue: cannot write the worker's heartbeat to the table of workers; the worker continues", retry.FailingIn("announcer", err, again))
}

// overdue reports tasks that no worker takes.
func (e events) overdue(g overdue.Group) {
	e.log.Warn("falldue: tasks have been due for more than a minute, and no worker has taken the oldest one",
		"queue", g.Queue, "kind", g.Kind, "tasks", g.Tasks, "counted_up_to", overdue.Most, "due_since", g.DueSince)
}

func (e events) searchFailed(err error) {
	e.log.Warn("falldue: cannot search for overdue tasks", retry.FailedIn("overdue", err))
}

func (e events) progressFailed(err error) {
	e.log.Warn("falldue: cannot delete the progress of tasks that are gone", retry.FailedIn("cleaner", err))
}

func (e events) stepsFailed(err error) {
	e.log.Warn("falldue: cannot delete the steps of tasks that are gone", retry.FailedIn("cleaner", err))
}

func (e events) changesFailed(err error) {
	e.log.Warn("falldue: cannot delete old pauses, overrides and cancellations", retry.FailedIn("cleaner", err))
}

// overtime reports handlers of a kind that have not returned although their timeout has expired.
func (e events) overtime(kind string, late lateRuns) {
	e.log.Warn("falldue: handlers have not returned although their timeout has passed", "kind", kind, "count", late.count, "timeout", late.timeout,
		"late_by", time.Since(late.since).Round(time.Second), "tasks", late.tasks)
}

// unusedLimits reports limits per key that have counted no task.
func (e events) unusedLimits(u unused) {
	e.log.Warn("falldue: no task has the key, or the part of a key, that a limit counts; the limit has no effect", u.owner, u.name,
		"limit", strings.Join(u.texts, ", "), "count", u.count, "task", u.last)
}

// historyFailed reports that the history of runs could not be written. The log has one line until it can again.
func (e events) historyFailed(err error, again bool) {
	e.log.Warn("falldue: cannot write the history of runs, which has a gap now; the worker continues", retry.FailingIn("history", err, again))
}

func (e events) historyNotCleaned(err error) {
	e.log.Warn("falldue: cannot delete old history", retry.FailedIn("cleaner", err))
}
