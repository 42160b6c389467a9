package store

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// Limit is a limit on the tasks of a kind or a queue. It has permits, and a task is claimed
// together with one permit of each of its limits. Lanes may share a limit.
type Limit struct {
	Text   string        `json:"text"` // as the code that makes it
	Name   string        `json:"name"` // of its permits, without the task key or the part if it is PerKey
	PerKey bool          `json:"per_key,omitempty"`
	Part   string        `json:"part,omitempty"` // of the key, if the limit counts the tasks of each value of the part separately
	Form   LimitForm     `json:"form"`
	Most   int           `json:"most"`          // tasks, see the forms
	Per    time.Duration `json:"per,omitempty"` // of a rate, in nanoseconds
}

// LimitName returns the name of an owner's limit. If the limit is per key, Of adds the task key to the name, or the value
// of a part. No two limits have the same name: names of kinds, queues and parts, and task keys, have no spaces.
func LimitName(owner string, form LimitForm, per time.Duration, perKey bool, part string) string {
	switch form {
	case Bucket:
		owner += " bucket " + per.String()
	case Window:
		owner += " rate " + per.String()
	case Sequence, HaltingSequence:
		owner += " order"
	default:
		owner += " running"
	}
	if part != "" {
		owner += " per " + part
	}
	if perKey {
		owner += " of "
	}
	return owner
}

// Owned returns the limit as one of an owner.
func (l Limit) Owned(owner string) Limit {
	l.Name = LimitName(owner, l.Form, l.Per, l.PerKey, l.Part)
	return l
}

// Of returns the limit for the tasks with a key or "", and false if it does not limit them.
func (l Limit) Of(key string) (Limit, bool) {
	applies := l.Applies(key)
	if applies && l.PerKey {
		if l.Part != "" {
			key, _ = storable.Part(key, l.Part)
		}
		l.Name += key
	}
	return l, applies
}

// Applies reports whether the limit applies to tasks with a key or "".
func (l Limit) Applies(key string) bool {
	if l.Part != "" {
		_, has := storable.Part(key, l.Part)
		return has
	}
	return !l.PerKey || key != ""
}

// Limits reports whether any of limits applies to tasks with a key or "".
func Limits(limits []Limit, key string) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l.Applies(key) })
}

// LimitsOf appends to list the limits that apply to tasks with a key or "".
func LimitsOf(list, limits []Limit, key string) []Limit {
	for _, l := range limits {
		if of, applies := l.Of(key); applies {
			list = append(list, of)
		}
	}
	return list
}

// LimitForm decides which permits of a limit are free.
type LimitForm int

// The forms of limits.
const (
	// Running: up to Most tasks run concurrently. A permit is free when its claim no longer lives. If
	// the claim was ended from outside, its handler must have ended, too.
	Running LimitForm = iota + 1
	// Window: Most tasks are claimed in any time as long as Per. A permit is free Per after
	// it was taken.
	Window
	// Bucket: one task is claimed each Per on average, and up to Most in a burst after a pause.
	// Its one permit has the time until which the claimed tasks use up the average.
	Bucket
	// Sequence: one task after the other, in the order in which they fall due. One task has
	// the permit until the task is done, dead, cancelled or deleted.
	Sequence
	// HaltingSequence: a Sequence in which a dead task keeps the permit, even if it is retried.
	HaltingSequence
)

// Ordered reports whether the tasks of a limit run in order.
func (f LimitForm) Ordered() bool { return f == Sequence || f == HaltingSequence }

// Timed reports whether permits of a limit become free with time, and not when tasks end.
func (f LimitForm) Timed() bool { return f == Window || f == Bucket }

// permits returns how many permits a limit has.
func (l Limit) permits() int {
	if l.Form == Bucket {
		return 1
	}
	return l.Most
}

// quota is the number of tasks that a limit admits during a claim. It comes from permits that were
// read without locks. It takes effect only if no other claim takes the permits in the meantime.
type quota struct {
	Limit
	room     int           // how many more tasks
	reserved int           // how many of them the statement under way may find
	wait     time.Duration // until there is room again, or 0 if unknown
	free     []*statements.Permit
	permits  []*statements.Permit // the permits that exist
	missing  int                  // how many permits do not exist yet
	surplus  bool                 // there are more permits than the limit has: it was higher, or is higher for other workers
	holder   *statements.Permit   // of a sequence: names the task that comes next, if one has begun
}

// newQuota returns the quota of a limit with its permits.
func newQuota(l Limit, permits []*statements.Permit) *quota {
	q, taken := &quota{Limit: l, permits: permits, missing: l.permits()}, 0
	for _, p := range permits {
		inLimit := p.N < l.permits() // Most may have been higher
		if inLimit {
			q.missing--
		} else {
			q.surplus = true
		}
		switch {
		case q.isTaken(p):
			taken++
		case inLimit:
			q.free = append(q.free, p)
		}
	}
	// Claims that begin at the same time should not all try the same permits.
	rand.Shuffle(len(q.free), func(i, j int) { q.free[i], q.free[j] = q.free[j], q.free[i] })
	q.room = max(min(len(q.free)+q.missing, l.permits()-taken), 0)
	if l.Form == Bucket {
		q.room, q.wait = l.Most, 0
		if len(q.free) > 0 {
			q.fill(q.free[0])
		}
	}
	return q
}

// firstMissing returns the first numbers of permits that do not exist yet, up to n.
func (q *quota) firstMissing(n int) (numbers []int) {
	there := make(map[int]bool, len(q.permits))
	for _, p := range q.permits {
		there[p.N] = true
	}
	for number := 0; len(numbers) < min(n, q.missing); number++ {
		if !there[number] {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// isTaken reports whether a permit is taken.
func (q *quota) isTaken(p *statements.Permit) bool {
	switch q.Form {
	case Window:
		if p.Until <= p.Now {
			return false
		}
		if wait := Duration(p.Until - p.Now); q.wait == 0 || wait < q.wait {
			q.wait = wait
		}
		return true
	case Bucket:
		return false
	case Sequence, HaltingSequence:
		halts := q.Form == HaltingSequence
		switch {
		case p.Live != 0 || p.Kept() || halts && p.State == statements.StateDead:
			return true
		case p.Begun() || halts && p.State == statements.StateOpen: // the dead task was retried
			q.holder = p
		}
		return false
	default:
		return p.Live != 0 || p.Kept()
	}
}

// fill sets how many tasks a bucket admits.
func (q *quota) fill(p *statements.Permit) {
	ahead := Duration(max(p.Until-p.Now, 0)) // of the average
	full := time.Duration(q.Most) * q.Per
	if q.room = int(max(full-ahead, 0) / q.Per); q.room == 0 {
		q.wait = ahead - full + q.Per
	}
}

// next returns the permit for a task that the limit admits, and how long it is taken.
func (q *quota) next() (p *statements.Permit, taken time.Duration) {
	p = q.free[0]
	switch q.Form {
	case Bucket:
		return p, q.Per
	case Window:
		taken = q.Per
	}
	q.free = q.free[1:]
	return p, taken
}
