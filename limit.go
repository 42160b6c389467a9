package falldue

import (
	"fmt"
	"time"

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

// A Limit limits the tasks of a kind or of a queue, over all workers. [AtMost], [Rate] and
// [InOrder] make one. The database enforces it, and nothing has to be cleaned up after a
// worker that dies. Tasks that a limit holds back stay where they are and use up no attempt.
type Limit struct {
	form   store.LimitForm
	most   int
	per    time.Duration // Of a rate
	bursts bool          // Of a rate: it has a burst
	burst  int
	perKey bool
	err    string // why the limit cannot be, or ""
}

// AtMost limits how many tasks run at once, 1 to 1,000. A task counts from its claim until
// it is settled, or until its lease ends if its worker dies. A task that waits for a retry
// does not count, and neither does a handler that goes on after its context has ended
// because the lease was lost.
func AtMost(n int) Limit { return Limit{form: store.Running, most: n} }

// Rate limits how many tasks start: no more than n, 1 to 1,000, in any time as long as per,
// 1 millisecond to 366 days. Each attempt counts, from its claim on. With [Limit.Burst]
// it is a rate on average, and n may be more.
func Rate(n int, per time.Duration) Limit { return Limit{form: store.Window, most: n, per: per} }

// InOrder lets the tasks of a key run one after the other, in the order in which they fall
// due: the next one starts when the one before it is done, dead, cancelled or deleted. A
// task that failed or was snoozed keeps its place, and the others wait for it. Tasks that
// are due at once are in the order of their enqueues, if each transaction has committed
// before the next enqueue begins, and within a call in the order of its arguments. Tasks
// Of other priorities or with policies of their own have an order of their own, and so
// have those of each queue: tasks of a key in two queues run one at a time, but in no order
// between the queues. Tasks without a key have no order.
func InOrder() Limit { return Limit{form: store.Sequence, most: 1, perKey: true} }

// PerKey returns a limit that counts the tasks of each EnqueueOptions.Key apart. It does
// not limit tasks without a key.
func (l Limit) PerKey() Limit {
	l.perKey = true
	return l
}

// Burst returns a rate that holds on average: one task starts each per/n, and up to n tasks,
// 1 to 1,000, start at once after a pause. The rate itself may be above 1,000 then.
func (l Limit) Burst(n int) Limit {
	if l.form != store.Window {
		l.err = "only a Rate has a Burst"
	}
	l.bursts, l.burst = true, n
	return l
}

// HaltOnDeath returns an order in which nothing runs after a task that is dead, until the
// task is retried ([Queue.Retry]) and then done or cancelled, or until it is deleted. A dead
// task cannot be cancelled. The sequence also goes on, without a warning, when DeadRetention
// ([Config], [KindConfig]) has expired and a worker deletes the dead task: keep dead tasks
// [Forever], which is the default, or for longer than you need to look at them.
func (l Limit) HaltOnDeath() Limit {
	if !l.inOrder() {
		l.err = "only InOrder has HaltOnDeath"
		return l
	}
	l.form = store.HaltingSequence
	return l
}

// String returns the limit as the code that makes it.
func (l Limit) String() string {
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
	}
	return text
}

func (l Limit) inOrder() bool { return l.form == store.Sequence || l.form == store.HaltingSequence }

// validate checks a limit of owner.
func (l Limit) validate(owner string) error {
	rate, bucket := l.form == store.Window, l.bursts
	switch {
	case l.form == 0:
		return invalid("an empty Limit of %s; AtMost, Rate and InOrder make one", owner)
	case l.err != "":
		return invalid("limit %v of %s: %s", l, owner, l.err)
	case rate && (l.most < 1 || l.most > maxPermits && !bucket):
		return invalid("limit %v of %s; allowed are 1 to 1,000 tasks, and more with a Burst", l, owner)
	case !rate && (l.most < 1 || l.most > maxPermits):
		return invalid("limit %v of %s; allowed are 1 to 1,000 tasks", l, owner)
	case rate && (l.per < minPeriod || l.per > maxPeriod):
		return invalid("limit %v of %s; allowed are periods of 1ms to 366 days", l, owner)
	case bucket && (l.burst < 1 || l.burst > maxPermits):
		return invalid("limit %v of %s; allowed are bursts of 1 to 1,000 tasks", l, owner)
	case bucket && l.per/time.Duration(l.most) > maxFull/time.Duration(l.burst):
		return invalid("limit %v of %s; allowed are bursts of up to 100 years", l, owner)
	case bucket && l.per/time.Duration(l.most) < time.Microsecond:
		return invalid("limit %v of %s; allowed is up to one task a microsecond", l, owner)
	}
	return nil
}

// validLimits checks the limits of owner.
func validLimits(owner string, limits []Limit) error {
	names := map[string]Limit{}
	for _, l := range limits {
		if err := l.validate(owner); err != nil {
			return err
		}
		name := l.of(owner).Name
		if other, twice := names[name]; twice {
			return invalid("limits %v and %v of %s; allowed is one of them", other, l, owner)
		}
		names[name] = l
	}
	return nil
}

// limitsOf returns the limits of owner as the engine has them.
func limitsOf(owner string, limits []Limit) (list []store.Limit) {
	for _, l := range limits {
		list = append(list, l.of(owner))
	}
	return list
}

// of returns the limit of owner.
func (l Limit) of(owner string) store.Limit {
	limit := store.Limit{Text: l.String(), PerKey: l.perKey, Form: l.form, Most: l.most, Per: l.per}
	if l.bursts {
		limit.Form, limit.Most, limit.Per = store.Bucket, l.burst, l.per/time.Duration(l.most)
	}
	limit.Name = store.LimitName(owner, limit.Form, limit.Per, l.perKey)
	return limit
}
