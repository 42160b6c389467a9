package falldue

import (
	"cmp"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// forever is the retention of tasks that are not deleted.
const forever = time.Duration(-1)

// retentions say how long finished tasks of the kinds that a worker handles stay in the
// table, and those of all other kinds.
type retentions struct {
	others   Config
	handlers map[string]*handler // by kind
}

// of returns how long tasks of a kind that finished in a state stay, or forever.
func (r retentions) of(state, kind string) time.Duration {
	var own KindConfig
	h := r.handlers[kind]
	if h != nil {
		own = h.kind.KindConfig
	}
	switch state {
	case statements.StateDone:
		if h == nil && r.others.DoneRetention == 0 {
			return forever // a worker that handles the kind may keep them
		}
		return own.keepsDone(r.others.DoneRetention)
	case statements.StateDead:
		return orForever(cmp.Or(own.DeadRetention, r.others.DeadRetention))
	}
	return orForever(cmp.Or(own.CancelledRetention, own.DeadRetention, r.others.CancelledRetention, r.others.DeadRetention))
}

// keepsDone returns how long done tasks of a kind stay, on a worker that keeps those of
// other kinds for d. They are deleted at once if it is 0.
func (k KindConfig) keepsDone(d time.Duration) time.Duration {
	return max(cmp.Or(k.DoneRetention, d), 0)
}

// orForever returns d, or forever if it is 0 or less.
func orForever(d time.Duration) time.Duration {
	if d <= 0 {
		return forever
	}
	return d
}

// shortest returns the shortest retention of a state, but forever for none.
func (r retentions) shortest(state string) time.Duration {
	least := r.of(state, "") // of a kind that nobody handles
	for kind := range r.handlers {
		if d := r.of(state, kind); d != forever && (least == forever || d < least) {
			least = d
		}
	}
	return least
}
