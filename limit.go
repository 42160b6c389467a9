package falldue

import (
	"fmt"

	"github.com/falldue/falldue/internal/store"
)

// maxPermits is the greatest number of a limit. Claims look at each permit.
const maxPermits = 1000

// A Limit limits the tasks of a kind or of a queue, across all workers. [AtMost] makes
// one. The database enforces it, and it needs no cleaning up after workers that die.
// Tasks that a limit holds back stay where they are and use up no attempt.
type Limit struct {
	form   store.LimitForm
	most   int
	perKey bool
}

// AtMost limits how many tasks run at once, 1 to 1,000. A task counts from its claim until
// it is settled, or until its lease ends if its worker dies. A task that waits for a retry
// does not count. A handler that goes on after its context has ended because of
// [ErrLeaseLost] does not count either.
func AtMost(n int) Limit { return Limit{form: store.Running, most: n} }

// PerKey returns a limit that counts the tasks of each EnqueueOptions.Key apart. It does
// not limit tasks without a key.
func (l Limit) PerKey() Limit {
	l.perKey = true
	return l
}

// String returns the limit as the code that makes it.
func (l Limit) String() string {
	text := fmt.Sprintf("AtMost(%d)", l.most)
	if l.perKey {
		text += ".PerKey()"
	}
	return text
}

// validLimits checks the limits of owner.
func validLimits(owner string, limits []Limit) error {
	names := map[string]Limit{}
	for _, l := range limits {
		if l.form == 0 {
			return invalid("an empty Limit of %s; AtMost makes one", owner)
		}
		if l.most < 1 || l.most > maxPermits {
			return invalid("limit %v of %s; allowed are 1 to 1,000 tasks", l, owner)
		}
		name := l.name(owner, "")
		if l.perKey {
			name = l.name(owner, "key")
		}
		if other, twice := names[name]; twice {
			return invalid("limits %v and %v of %s; allowed is one of them", other, l, owner)
		}
		names[name] = l
	}
	return nil
}

// name returns the name of a limit of owner, for tasks with a key or "". No two limits have
// the same name: names of kinds and queues, and keys, have no spaces.
func (l Limit) name(owner, key string) string {
	name := owner + " running"
	if l.perKey {
		name += " of " + key
	}
	return name
}
