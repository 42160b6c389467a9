package upkeep

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// mostPairs is how many pairs of a queue and a kind have sums of their own in a minute. The other
// kinds of a queue are added up as the kind "".
const mostPairs = 200

type pair struct{ queue, kind string }

// Tally sums up the runs of a worker since the last [Tally.Take]. The zero value has none.
type Tally struct {
	mu   sync.Mutex
	sums map[pair]*store.Sums
	// delays remembers delays: to compute a formula costs more than everything else here.
	delays map[attempted]time.Duration
}

// attempted is a number of attempts under a policy.
type attempted struct {
	policy   *control.CompiledPolicy
	attempts int
}

// mostDelays is how many delays a tally remembers.
const mostDelays = 1000

// delayOf returns the delay after which the task of a run fell due.
func (t *Tally) delayOf(r *run.Run) time.Duration {
	at := r.Claim.From
	if at.Attempts == 0 || at.State == statements.StateSnoozed {
		return 0
	}
	key := attempted{r.Policy, at.Attempts}
	delay, known := t.delays[key]
	if !known {
		if t.delays == nil || len(t.delays) >= mostDelays {
			t.delays = map[attempted]time.Duration{}
		}
		delay = r.Policy.DelayIn(at)
		t.delays[key] = delay
	}
	return delay
}

// Started counts a run whose handler begins.
func (t *Tally) Started(r *run.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := t.of(r.Queue, r.Claim.From.Kind)
	sums.Started++
	note(&sums.Lag, r.Lag(t.delayOf(r)))
}

// Ended counts a run that has ended. A released run does not count.
func (t *Tally) Ended(r *run.Run, end outcome.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := t.of(r.Queue, r.Claim.From.Kind)
	switch end {
	case outcome.Done:
		sums.Done++
	case outcome.Retried, outcome.RetriedAfter:
		sums.Failed++
	case outcome.Dead, outcome.Discarded:
		sums.Dead++
	case outcome.Snoozed, outcome.Repeated:
		sums.Snoozed++
	case outcome.Cancelled:
		sums.Cancelled++
	case outcome.Expired:
		sums.Expired++
	case outcome.Lost:
		sums.Lost++
	default:
		return
	}
	if r.Began() && r.Took > 0 { // else it was lost while it ran
		note(&sums.Run, r.Took)
	}
}

// Expired counts tasks that have not started in time, and that no worker has claimed.
func (t *Tally) Expired(queue, kind string, tasks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(queue, kind).Expired += int64(tasks)
}

// Take returns the sums since the last call, ordered by queue and kind.
func (t *Tally) Take() (list []store.Sums) {
	t.mu.Lock()
	all := t.sums
	t.sums, t.delays = nil, nil // an override may have replaced policies
	t.mu.Unlock()
	for _, sums := range all {
		if sums.Started+sums.Done+sums.Failed+sums.Dead+sums.Snoozed+sums.Cancelled+sums.Lost+sums.Expired > 0 {
			list = append(list, *sums)
		}
	}
	slices.SortFunc(list, func(a, b store.Sums) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// of returns the sums of a queue and a kind.
func (t *Tally) of(queue, kind string) *store.Sums {
	at := pair{queue, kind}
	if sums := t.sums[at]; sums != nil {
		return sums
	}
	if t.sums == nil {
		t.sums = map[pair]*store.Sums{}
	}
	if len(t.sums) >= mostPairs && kind != "" {
		return t.of(queue, "")
	}
	sums := &store.Sums{Queue: queue, Kind: kind}
	t.sums[at] = sums
	return sums
}

// buckets are the greatest times in the buckets of a distribution, except for the last bucket, which has no limit.
var buckets = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// note adds a time to a distribution.
func note(d *store.Distribution, took time.Duration) {
	us, i := took.Microseconds(), 0
	for i < len(buckets) && took > buckets[i] {
		i++
	}
	d.Sum, d.Max = d.Sum+us, max(d.Max, us)
	d.In[i]++
}
