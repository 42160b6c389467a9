package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// Job is the arguments of a run's tasks.
type Job struct {
	Key string `json:"key"`
	// Unique is the same of jobs of which one alone may be unfinished, or "".
	Unique string `json:"unique,omitempty"`
	// After has the numbers of the jobs of the same enqueuer after which the job runs, and
	// OnDeath what it does if one of them dies.
	After   []int   `json:"after,omitempty"`
	OnDeath onDeath `json:"on_death,omitempty"`
	// Dies says that the job is never done: it is discarded instead.
	Dies bool `json:"dies,omitempty"`
	// Expired says that the job had expired before its enqueue, and Dated that its ExpireAt made it expire.
	Expired bool `json:"expired,omitempty"`
	Dated   bool `json:"dated,omitempty"`
	// Version counts the changes of the job's arguments while it waits.
	Version int `json:"version,omitempty"`
}

// maxAttempts is the number of failures after which a job is dead.
const maxAttempts = 6

// policies are the policies that the kinds of a process can have, as if a deploy had
// changed them. A run without faults has the first alone.
var policies = []string{
	"delay 20ms * n; jitter 20ms; attempts 6",
	"delay geometric(min=10ms, max=200ms, retries=10); attempts 6",
}

// kinds are the kinds of a run. falldue settles a plain job after its handler has
// returned. The handler of a transactional job settles it itself, together with an
// effect. Few limited jobs run at once, and fewer of one key. The ordered jobs of a key run
// one after the other. Few rated jobs start at a time. Jobs of the kind changed are cancelled, retried
// and deleted. A stepped job has steps, and gathered jobs run in batches. An amended job is changed while it waits.
// Handlers of stubborn jobs get stuck. A dead job of the kind halting halts its sequence until the job is retried. An
// expiring job is not run if it starts late. A repeated job runs again after it has succeeded.
type kinds struct {
	plain, transactional, limited, ordered, rated, changed, stepped, gathered, amended, stubborn, halting, expiring, repeated falldue.Kind[Job]
}

const plainName, transactionalName = "plain", "transactional"

func newKinds(policy string) (kinds, error) {
	p, err := backoff.Parse(policy)
	if err != nil {
		return kinds{}, err
	}
	cfg := falldue.KindConfig{Policy: p}
	k := kinds{plain: falldue.NewKind[Job](plainName, cfg), transactional: falldue.NewKind[Job](transactionalName, cfg)}
	k.changed = falldue.NewKind[Job](changedName, cfg)
	k.stepped, k.gathered, k.amended = falldue.NewKind[Job](steppedName, cfg), falldue.NewKind[Job](gatheredName, cfg), falldue.NewKind[Job](amendedName, cfg)
	cfg.Policy = p.WithMaxAttempts(repeatAttempts)
	k.repeated = falldue.NewKind[Job](repeatedName, cfg)
	cfg.Policy = p.WithStartWithin(expiresAfter)
	k.expiring = falldue.NewKind[Job](expiringName, cfg)
	cfg.Policy = p
	cfg.Timeout = stubbornTimeout
	k.stubborn = falldue.NewKind[Job](stubbornName, cfg)
	cfg.Timeout = 0
	cfg.Limits = []falldue.Limit{falldue.AtMost(mostLimited), falldue.AtMost(mostOfKey).PerKey()}
	k.limited = falldue.NewKind[Job](limitedName, cfg)
	cfg.Limits = []falldue.Limit{falldue.InOrder()}
	k.ordered = falldue.NewKind[Job](orderedName, cfg)
	cfg.Limits = []falldue.Limit{falldue.InOrder().HaltOnDeath()}
	k.halting = falldue.NewKind[Job](haltingName, cfg)
	cfg.Limits = rates()
	k.rated = falldue.NewKind[Job](ratedName, cfg)
	return k, nil
}

// plan is what one run of a job does. It depends on nothing but the seed of the
// suite's run, the job and the claim.
type plan struct {
	outcome string
	panics  bool
	after   time.Duration // how long the handler works
	wait    time.Duration // of a snooze or a RetryAfter; 0 is the delay of the policy
	blind   bool          // the handler ignores the end of its context
}

// planFor draws a plan. Of 100 runs 68 are done, 24 fail, 5 snooze and 3 end their
// task as dead. One run in fifty works for up to longest, the others for up to a
// hundredth of that.
func planFor(seed uint64, job Job, fence int64, longest time.Duration) plan {
	h := fnv.New64a()
	fmt.Fprint(h, job.Key, fence)
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
	if job.Dies && p.outcome == OutcomeDone {
		p.outcome = OutcomeDiscarded
	}
	return p
}

// work takes as long as planned, or until ctx ends.
func (p plan) work(ctx context.Context) {
	if p.blind {
		ctx = context.WithoutCancel(ctx)
	}
	timer := time.NewTimer(p.after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// span draws a duration from 0 to d.
func span(dice *rand.Rand, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(dice.Int64N(int64(d)))
}
