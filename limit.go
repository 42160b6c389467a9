package falldue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

const (
	// maxPermits is the greatest number of a limit. Claims look at each permit.
	maxPermits = 1000
	// minPeriod and maxPeriod bound the period of a rate.
	minPeriod, maxPeriod = time.Millisecond, 366 * 24 * time.Hour
	// maxFull bounds how long a burst lasts on average; a time.Duration ends at 292 years.
	maxFull = 100 * maxPeriod
)

// Limit limits the tasks of a kind or of a queue, across all workers. [AtMost], [Rate] and [InOrder] make one. The
// database enforces the limit, and a worker that dies leaves nothing to clean up. Tasks that a limit delays keep
// waiting and use up no attempt.
type Limit interface {
	// String returns the Go code that makes the limit, such as "AtMost(5).PerKey()".
	String() string
	settings() limit
}

// limit is the content of every limit. The zero limit limits nothing.
type limit struct {
	form   store.LimitForm
	most   int
	per    time.Duration // of a rate
	bursts bool          // of a rate: it has a burst
	burst  int
	perKey bool
	parts  int    // how many parts of the key PerKey got; up to one is allowed
	part   string // of the key
}

func (l limit) settings() limit { return l }

// String returns the Go code that makes the limit.
func (l limit) String() string {
	text := fmt.Sprintf("AtMost(%d)", l.most)
	switch l.form {
	case store.Window:
		text = fmt.Sprintf("Rate(%d, %v)", l.most, l.per)
	case store.Sequence:
		text = "InOrder()"
	case store.HaltingSequence:
		text = "InOrder().HaltOnDeath()"
	}
	if l.bursts {
		text += fmt.Sprintf(".Burst(%d)", l.burst)
	}
	if l.perKey && !l.inOrder() {
		text += ".PerKey()"
		if l.parts > 0 {
			text = strings.TrimSuffix(text, ")") + `"` + l.part + `")`
		}
	}
	return text
}

// perKeyOr returns the limit of each key, or of each value of a part.
func (l limit) perKeyOr(part []string) limit {
	l.perKey, l.parts, l.part = true, len(part), strings.Join(part, `", "`)
	return l
}

func (l limit) inOrder() bool { return l.form == store.Sequence || l.form == store.HaltingSequence }

// ConcurrencyLimit limits how many tasks run at a time. [AtMost] makes it.
type ConcurrencyLimit struct{ limit }

// AtMost limits how many tasks run at a time. n is 1 to 1,000. A task counts from its claim until its outcome is
// recorded, or until its lease ends if its worker dies. A task that waits for a retry does not count. Neither does a
// handler that has lost its lease but has not returned yet.
func AtMost(n int) ConcurrencyLimit { return ConcurrencyLimit{limit{form: store.Running, most: n}} }

// PerKey returns a limit that counts the tasks of each EnqueueOptions.Key separately. With the name of a part of keys
// ([KeyOf]), it counts the tasks of each value of that part. Tasks without a key, or without the part, are not limited.
func (l ConcurrencyLimit) PerKey(part ...string) ConcurrencyLimit {
	l.limit = l.perKeyOr(part)
	return l
}

// RateLimit limits how many tasks start in a period. [Rate] makes it.
type RateLimit struct{ limit }

// Rate limits how many tasks start: up to n in any period of length per. n is 1 to 1,000, and per is 1 millisecond to
// 366 days. Each attempt counts, from its claim on. [RateLimit.Burst] makes it an average rate.
func Rate(n int, per time.Duration) RateLimit {
	return RateLimit{limit{form: store.Window, most: n, per: per}}
}

// Burst returns an average rate. Over time, tasks start at the rate of [Rate], but after a time without starts, up to
// n tasks start immediately. n is 1 to 1,000. With Burst, the n of Rate can exceed 1,000.
func (l RateLimit) Burst(n int) RateLimit {
	l.bursts, l.burst = true, n
	return l
}

// PerKey returns a rate that counts the tasks of each EnqueueOptions.Key separately. With the name of a part of keys
// ([KeyOf]), it counts the tasks of each value of that part. Tasks without a key, or without the part, are not limited.
func (l RateLimit) PerKey(part ...string) RateLimit {
	l.limit = l.perKeyOr(part)
	return l
}

// OrderLimit runs the tasks of a key in order. [InOrder] makes it.
type OrderLimit struct{ limit }

// InOrder runs the tasks of a key one after the other, as a sequence, in the order in which they fall due. The next
// task starts when the one before it is done, dead, cancelled or deleted. A task that failed or was snoozed keeps its
// place, and the others wait for it. Tasks that fall due at the same time run in the order of their enqueues, if each
// transaction has committed before the next enqueue begins. Tasks of one call run in the order of its arguments.
//
// Each queue, priority and per-task policy of a key has a separate order: tasks of a key in two queues run one
// at a time, but in no particular order between the queues. Tasks without a key have no order. InOrder is a limit for
// kinds, not for queues.
func InOrder() OrderLimit {
	return OrderLimit{limit{form: store.Sequence, most: 1, perKey: true}}
}

// HaltOnDeath returns an order in which a dead task halts its key. No later task runs until the dead task is retried
// ([Queue.Retry]) and then done or cancelled, or until it is deleted. A dead task cannot be cancelled. The sequence
// also continues, without a warning, when DeadRetention ([Config], [KindConfig]) has expired and a worker deletes the
// dead task. Keep dead tasks [Forever], which is the default, or for longer than you need to look at them.
func (l OrderLimit) HaltOnDeath() OrderLimit {
	if l.form == store.Sequence {
		l.form = store.HaltingSequence
	}
	return l
}

// validLimits checks the limits of owner: a kind or a queue, and its name.
func validLimits(owner, name string, limits []Limit) error {
	names := map[string]Limit{}
	for _, l := range limits {
		if l == nil || l.settings().form == 0 {
			return invalid("an empty limit on %s %q: make it with AtMost, Rate or InOrder", owner, name)
		}
		if allowed := l.settings().allowed(); allowed != "" {
			return invalid("limit %v on %s %q: %s", l, owner, name, allowed)
		}
		stored := storedLimit(owner+" "+name, l).Name
		if other, twice := names[stored]; twice {
			return invalid("limits %v and %v on %s %q: set only one", other, l, owner, name)
		}
		names[stored] = l
	}
	return nil
}

// allowed returns the rule that an invalid limit violates, or "" for a valid limit.
func (l limit) allowed() string {
	rate, bucket := l.form == store.Window, l.bursts
	switch {
	case rate && (l.most < 1 || l.most > maxPermits && !bucket):
		return "the number must be 1 to 1,000; with a Burst, it can be higher"
	case !rate && (l.most < 1 || l.most > maxPermits):
		return "the number must be 1 to 1,000"
	case rate && (l.per < minPeriod || l.per > maxPeriod):
		return "the period must be 1ms to 366 days"
	case bucket && (l.burst < 1 || l.burst > maxPermits):
		return "the burst must be 1 to 1,000"
	case bucket && l.per/time.Duration(l.most) > maxFull/time.Duration(l.burst):
		return "at the average rate, the burst must last at most 100 years"
	case bucket && l.per/time.Duration(l.most) < time.Microsecond:
		return "the rate must be at most one task per microsecond"
	case l.parts > 1:
		return "PerKey takes one part: set one limit for each part, or PerKey() to count each whole key"
	case l.parts == 1:
		if err := storable.CheckPart(l.part); err != nil {
			return err.Error()
		}
	}
	return ""
}

// ordered reports whether limits have an order.
func ordered(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l != nil && l.settings().inOrder() })
}

// limitsOf returns the limits of owner as the engine has them.
func limitsOf(owner string, limits []Limit) (list []store.Limit) {
	for _, l := range limits {
		list = append(list, storedLimit(owner, l))
	}
	return list
}

// storedLimit returns a limit of owner as the engine has it.
func storedLimit(owner string, of Limit) store.Limit {
	l := of.settings()
	limit := store.Limit{Text: l.String(), PerKey: l.perKey, Part: l.part, Form: l.form, Most: l.most, Per: l.per}
	if l.bursts {
		limit.Form, limit.Most, limit.Per = store.Bucket, l.burst, l.per/time.Duration(l.most)
	}
	limit.Name = store.LimitName(owner, limit.Form, limit.Per, limit.PerKey, limit.Part)
	return limit
}
