package falldue

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// handler is what a worker knows of a kind whose tasks it runs.
type handler struct {
	kind, queue string
	priority    int
	// limits are those of the kind.
	limits []store.Limit
	// lostRetries is the number of first attempts after which a lost task is due as soon as
	// its lease ends.
	lostRetries int
	retention   retention
	rule        *rule
	// run runs a task, and returns nil if it succeeded.
	run  func(ctx context.Context, r *taskRun) *failure
	pace pace
}

// retention is how long finished tasks stay in the table, by their states, or forever. Done
// tasks for which it is 0 are deleted when they are settled.
type retention struct{ done, dead, cancelled time.Duration }

// forever is the retention of tasks that are not deleted.
const forever = time.Duration(-1)

// of returns how long tasks that finished in a state stay.
func (r retention) of(state string) time.Duration {
	switch state {
	case statements.StateDone:
		return r.done
	case statements.StateDead:
		return r.dead
	}
	return r.cancelled
}

// running returns the state of a task while an attempt of it runs.
func (h *handler) running(attempt int) string {
	if attempt <= h.lostRetries {
		return statements.StateSnoozed // due when its lease ends, without a delay
	}
	return statements.StateOpen
}

// keepsDone reports whether done tasks stay in the table.
func (h *handler) keepsDone() bool { return h.retention.done != 0 }

// rulesOf returns the rules of kinds, by their names.
func rulesOf(handlers map[string]*handler) map[string]*rule {
	rules := make(map[string]*rule, len(handlers))
	for kind, h := range handlers {
		rules[kind] = h.rule
	}
	return rules
}
