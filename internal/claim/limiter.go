package claim

import (
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// Limiter knows the limits of a queue's lanes.
type Limiter struct {
	limits   []store.Limit // Of the queue
	handlers map[string]*run.Handler
	Any      bool // some tasks have limits
}

// NewLimiter returns a limiter of a queue with limits of its own.
func NewLimiter(limits []store.Limit, handlers map[string]*run.Handler) Limiter {
	l := Limiter{limits: limits, handlers: handlers, Any: len(limits) > 0}
	for _, h := range handlers {
		l.Any = l.Any || len(h.Limits) > 0
	}
	return l
}

// of returns the limits of the tasks of a lane.
func (l Limiter) of(at store.Lane) (limits []store.Limit) {
	if !l.Any {
		return nil
	}
	limits = store.LimitsOf(nil, l.limits, at.Key)
	if h := l.handlers[at.Kind]; h != nil {
		limits = store.LimitsOf(limits, h.Limits, at.Key)
	}
	return limits
}

// limited reports whether the tasks of a lane have limits.
func (l Limiter) limited(at store.Lane) bool {
	if !l.Any {
		return false
	}
	h := l.handlers[at.Kind]
	return store.Limits(l.limits, at.Key) || h != nil && store.Limits(h.Limits, at.Key)
}

// split splits lanes that are due, in the order in which to claim from them: it returns
// those to claim from next, and whether they have limits. These have a claim of their own.
// Lanes of a later priority wait for the others before them.
func (l Limiter) split(due []store.Lane) (next []store.Lane, limited bool) {
	if len(due) == 0 || !l.Any {
		return due, false
	}
	limited = l.limited(due[0])
	for i, at := range due {
		if l.limited(at) == limited {
			continue
		}
		next = append(next, due[:i]...)
		for _, other := range due[i:] {
			if other.Priority == at.Priority && l.limited(other) == limited {
				next = append(next, other)
			}
		}
		return next, limited
	}
	return due, limited
}
