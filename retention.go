package falldue

import (
	"cmp"
	"time"
)

// retentions returns how long finished tasks of the kinds that a worker handles stay in the
// table, and those of all other kinds.
type retentions struct {
	others   retention
	handlers map[string]*handler // by kind
}

// of returns how long tasks of a kind that finished in a state stay, or forever.
func (r retentions) of(state, kind string) time.Duration {
	if h := r.handlers[kind]; h != nil {
		return h.retention.of(state)
	}
	return r.others.of(state)
}

// shortest returns the shortest retention of a state, but forever for none.
func (r retentions) shortest(state string) time.Duration {
	least := r.others.of(state)
	for kind := range r.handlers {
		if d := r.of(state, kind); d != forever && (least == forever || d < least) {
			least = d
		}
	}
	return least
}

//ROOT

// retention returns how long finished tasks of the kind stay in the table.
func (k KindConfig) retention(c Config) retention {
	return retention{
		done:      max(cmp.Or(k.DoneRetention, c.DoneRetention), 0),
		dead:      orForever(cmp.Or(k.DeadRetention, c.DeadRetention)),
		cancelled: orForever(cmp.Or(k.CancelledRetention, k.DeadRetention, c.CancelledRetention, c.DeadRetention)),
	}
}

// retentionOfOthers returns how long finished tasks stay in the table whose kinds the worker does
// not handle. A worker that handles them may keep the done ones.
func (c Config) retentionOfOthers() retention {
	r := KindConfig{}.retention(c)
	if r.done == 0 {
		r.done = forever
	}
	return r
}

// orForever returns d, or forever if it is 0 or less.
func orForever(d time.Duration) time.Duration {
	if d <= 0 {
		return forever
	}
	return d
}
