package faults

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Job is what the tasks of a run carry: the name under which the history knows
// them.
type Job struct {
	Key string `json:"key"`
}

// maxAttempts is after how many failures a job is dead.
const maxAttempts = 6

// policies are what the kinds may have: those of one release, and of the next.
// A run in which nothing goes wrong has the first alone.
var policies = []string{
	"delay 20ms * n; jitter 20ms; attempts 6",
	"delay geometric(min=10ms, max=200ms, retries=10); attempts 6",
}

// kinds are the two kinds of a run. The end of a plain job is settled by falldue
// after its handler returned, that of a transactional one by its handler,
// together with an effect.
type kinds struct {
	plain, transactional falldue.Kind[Job]
}

const transactionalName = "transactional"

func newKinds(policy string) (kinds, error) {
	p, err := backoff.Parse(policy)
	if err != nil {
		return kinds{}, err
	}
	cfg := falldue.KindConfig{Policy: p}
	return kinds{falldue.NewKind[Job]("plain", cfg), falldue.NewKind[Job](transactionalName, cfg)}, nil
}

// plan is how one run of a job goes. It depends on nothing but the seed of the
// whole run, the job and the claim.
type plan struct {
	outcome string
	panics  bool
	after   time.Duration // how long the handler works
	wait    time.Duration // of a snooze, or of a retry that says when; 0 is the policy's
	blind   bool          // the handler does not look whether its lease is lost
}

// planFor draws a plan: of 100 runs 68 are done, 24 fail, 5 snooze and 3 end
// their task as dead. One in fifty works for up to longest, the others for a
// hundredth of that.
func planFor(seed uint64, key string, fence int64, longest time.Duration) plan {
	h := fnv.New64a()
	fmt.Fprint(h, key, fence)
	dice := rand.New(rand.NewPCG(seed, h.Sum64()))
	p := plan{outcome: OutcomeDone, after: span(dice, longest/100)}
	switch n := dice.IntN(100); {
	case n < 14:
		p.outcome = OutcomeFailed
	case n < 19:
		p.outcome, p.panics = OutcomeFailed, true
	case n < 24:
		p.outcome, p.wait = OutcomeFailed, time.Millisecond+span(dice, 50*time.Millisecond)
	case n < 29:
		p.outcome, p.wait = OutcomeSnoozed, span(dice, 50*time.Millisecond)
	case n < 32:
		p.outcome = OutcomeDiscarded
	}
	if dice.IntN(50) == 0 {
		p.after, p.blind = span(dice, longest), dice.IntN(2) == 0
	}
	return p
}

// span draws a duration below d.
func span(dice *rand.Rand, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(dice.Int64N(int64(d)))
}
