package upkeep

import (
	"time"

	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
)

// Retentions returns how long finished tasks of the kinds that a worker handles stay in the
// table, and those of all other kinds.
type Retentions struct {
	Others   run.Retention
	Handlers map[string]*run.Handler // by kind
}

// Of returns how long tasks of a kind that finished in a state stay, or forever.
func (r Retentions) Of(state, kind string) time.Duration {
	if h := r.Handlers[kind]; h != nil {
		return h.Retention.Of(state)
	}
	return r.Others.Of(state)
}

// Shortest returns the shortest retention of a state, but forever for none.
func (r Retentions) Shortest(state string) time.Duration {
	least := r.Others.Of(state)
	for kind := range r.Handlers {
		if d := r.Of(state, kind); d != run.Forever && (least == run.Forever || d < least) {
			least = d
		}
	}
	return least
}

// Every returns the time between two rounds of the cleaner: a second or more.
func (r Retentions) Every() time.Duration {
	every := CleanEvery
	for _, state := range finishedStates {
		least := r.Shortest(state)
		if least == run.Forever || state == statements.StateDone && least == 0 { // deleted when they are settled
			continue
		}
		every = min(every, max(least, time.Second))
	}
	return every
}
