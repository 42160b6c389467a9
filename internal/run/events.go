package run

import (
	"context"
	"errors"
	"log/slog"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// events logs what happens to runs of tasks.
// It has one method for each log line.
type events struct{ log *slog.Logger }

// beyondLimit reports tasks that became dead without running.
func (e events) beyondLimit(queue, kind, limit string, allowed, tasks int) {
	e.log.Error("falldue: tasks are dead: they have used more attempts than are allowed now", "queue", queue, "kind", kind,
		"count", tasks, "limit", limit, "allowed", allowed)
}

// died reports a dead task, and why it is dead.
func (e events) died(r *Run, why, text, stack string) {
	e.log.Error("falldue: a task is dead", e.failure(r, stack, "why", why, "error", text)...)
}

// attemptFailed reports a failure after which the task will run again.
func (e events) attemptFailed(r *Run, f *outcome.Failure) {
	switch {
	case f.Stack.Valid:
		e.log.Error("falldue: a handler panicked; the task runs again", e.failure(r, f.Stack.V, "error", f.Text)...)
	case f.Is(outcome.ErrPayload):
		e.undecodable(r, f.Text)
	case f.Is(outcome.ErrTimeout):
		e.log.Warn("falldue: a handler timed out; the task runs again", e.failure(r, "", "error", f.Text)...)
	default:
		if e.log.Enabled(context.Background(), slog.LevelDebug) {
			e.log.Debug("falldue: an attempt failed; the task runs again", e.failure(r, "", "error", f.Text)...)
		}
	}
}

// undecodable reports an attempt that failed because the payload could not be decoded.
func (e events) undecodable(r *Run, text string) {
	e.log.Warn("falldue: the payload of a task cannot be decoded; its attempt has failed", e.failure(r, "", retry.Failed(errors.New(text)))...)
}

// failedAfterDoneTx reports a failure without consequence: the task is done.
func (e events) failedAfterDoneTx(r *Run, f *outcome.Failure) {
	e.log.Warn("falldue: a handler failed after its DoneTx had committed; the task is done", e.failure(r, f.Stack.V, "error", f.Text)...)
}

// failure returns the attributes of a failure.
func (events) failure(r *Run, stack string, more ...any) []any {
	list := append([]any{"task", r.Claim.ID, "kind", r.Claim.From.Kind, "queue", r.Queue, "attempt", r.Claim.Attempts}, more...)
	if stack != "" {
		list = append(list, "stack", stack)
	}
	return list
}

// leaseLost reports that a claim ended with its lease, or because the task was cancelled or
// deleted. when is "while it ran" or "before its outcome was recorded".
func (e events) leaseLost(c *store.Claim, by outcome.Outcome, when string) {
	if by == outcome.Cancelled {
		e.log.Info("falldue: a task was cancelled or deleted "+when, "task", c.ID, "kind", c.From.Kind, "attempt", c.Attempts)
		return
	}
	e.log.Warn("falldue: lease lost "+when, "task", c.ID, "kind", c.From.Kind, "attempt", c.Attempts)
}

func (e events) settleFailed(tasks int, err error) {
	e.log.Warn("falldue: cannot record the outcomes of tasks", "tasks", tasks, retry.Failed(err))
}

// settleRefused reports a task whose settlement the database refuses.
func (e events) settleRefused(c *store.Claim, err error) {
	e.log.Warn("falldue: cannot record the outcome of a task", "task", c.ID, "kind", c.From.Kind, "error", err)
}

// notSettled reports a run that the settler gave up. The error is nil if the database was unavailable.
func (e events) notSettled(c *store.Claim, err error) {
	e.log.Error("falldue: the outcome of a task was not recorded before its lease ended; the task runs again", "task", c.ID, "kind", c.From.Kind, "error", err)
}

func (e events) progressFailed(err error) {
	e.log.Warn("falldue: cannot write the progress of tasks", retry.FailedIn("progress", err))
}
