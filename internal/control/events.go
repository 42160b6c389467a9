package control

import (
	"log/slog"

	"github.com/falldue/falldue/internal/retry"
)

// events logs why a worker cannot apply pauses, overrides and policies.
// It has one method for each log line.
type events struct{ log *slog.Logger }

func (e events) unreadablePolicy(queue, kind string, err error) {
	e.log.Error("falldue: tasks wait because their policy cannot be read", "queue", queue, "kind", kind, "error", err)
}

func (e events) policiesFailed(policies int, err error) {
	e.log.Error("falldue: cannot read the policies of tasks", "policies", policies, retry.FailedIn("policies", err))
}

// overrideFailed reports an override of policies that the worker cannot apply.
func (e events) overrideFailed(subject string, err error) {
	e.log.Error("falldue: cannot apply a policy override; keeping the current policy", "subject", subject, "error", err)
}

// pauseFailed reports a pause that the worker cannot apply.
func (e events) pauseFailed(subject string, err error) {
	e.log.Error("falldue: cannot apply a pause; its tasks continue", "subject", subject, "error", err)
}

func (e events) changesFailed(err error) {
	e.log.Warn("falldue: cannot read pauses, overrides and cancellations", retry.FailedIn("changes", err))
}
