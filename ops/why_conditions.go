package ops

import (
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

// WhyState is the state of the task. The condition is met for tasks that are blocked, open or snoozed.
type WhyState struct {
	State falldue.State
	Since time.Time // when the task finished, if it is finished
}

// WhyMembers describes the dependencies of a blocked task (package flow). The condition is not met while the task is
// blocked.
type WhyMembers struct {
	flow.Counts
	// WaitsFor has the first IDs of the dependencies that have not ended, and Failed has the first IDs of dead and
	// cancelled dependencies.
	WaitsFor, Failed []int64
	// OnDeath is the effect that a dead, cancelled or deleted dependency has on the task.
	OnDeath flow.OnDeath
}

// WhyClaim is the condition that no worker runs the task, with the task's latest claim. It is met if the task has no
// claim, or if the lease of the claim has ended.
type WhyClaim struct {
	// Worker is the ID of the worker that runs the task or has lost it, or "" if the task has no claim.
	Worker string
	// Started is when that run began, and Until is when its lease ends or has ended.
	Started, Until time.Time
	// Lost reports whether the lease has ended: the worker has died, or cannot reach the
	// database.
	Lost bool
	// Live reports whether the worker has sent a heartbeat within the last minute.
	Live bool
}

// WhyAttempts is the number of attempts that the task has used. The condition is not met if no attempt is left: the
// task becomes dead when it falls due.
type WhyAttempts struct {
	Attempts int
	Most     int // the limit on attempts; 0 means no limit
}

// WhyPolicy is a per-task policy, which a worker must be able to read. The condition is not met if the policy cannot be
// read, or if no live worker that handles the task can read it.
type WhyPolicy struct {
	Key  string
	Text string // the text of the policy, if it can be read
	Err  error  // why the policy cannot be read, or nil
	// Unread are the IDs of live workers that handle the task and cannot read the policy, such as workers of an older
	// release. UnreadError is the error of the first of these. Handling is how many live workers handle the task.
	Unread      []string
	Handling    int
	UnreadError string
}

// WhyDue is when the task falls due. The condition is met when the task is due under one of Rules.
type WhyDue struct {
	// Anchor is the time from which the wait counts: the time for which the task was enqueued, the end
	// of a snooze or of a lost lease, or the time of the last failure plus its Jitter.
	Anchor   time.Time
	Attempts int
	// Failed is when the last attempt failed, and Jitter the random part of the wait. Both are zero if the task waits for
	// something else.
	Failed time.Time
	Jitter time.Duration
	// Scheduled reports whether the task waits for the time for which it was enqueued, and Snoozed reports whether it
	// waits for the end of a snooze.
	Scheduled, Snoozed bool
	// Rules are the policies under which the task falls due, with their delays. There is one rule, or several if workers
	// of different releases have different policies. Rules is empty if no policy is known, because no live worker handles
	// the kind.
	Rules []DueRule
	// Override is the override that applies to the task now, or nil. Rules are the policies that result from the override,
	// its steps and its end.
	Override *Override
	Now      time.Time
}

// DueRule is a policy, and when a task falls due under it.
type DueRule struct {
	// Policy is the text of the policy under which the task falls due. Policy is "" if the task waits for no delay.
	Policy string
	Delay  time.Duration
	At     time.Time
	// From is when the policy begins to apply, if it does not apply now: when a later step of an override begins, or when
	// the override ends. It is the zero time if the policy applies now, or if the override does not change when the task
	// falls due.
	From time.Time
	// Workers are the IDs of the workers that use the policy. The list is empty for a per-task policy or a policy from
	// [Ops.WithPolicies], unless some workers cannot apply the override: then each rule lists its workers.
	Workers []string
	// Refused is the reason why Workers cannot apply the override of the task, or "".
	Refused string
}

// WhyExpiry is the time by which the task must start. The condition is met until that time. Only tasks that expire have it.
type WhyExpiry struct {
	// At is the time by which the task must start. Own reports whether it comes from [falldue.EnqueueOptions].ExpireAt,
	// and not from a policy.
	At  time.Time
	Own bool
	Now time.Time // the current time by the database's clock
}

// WhyPause lists the pauses that match the task. The condition is met if there are none.
type WhyPause struct{ Pauses []Pause }

// WhyWorker lists the live workers that work on the task's queue and handle its kind. The condition is met if there is
// such a worker.
type WhyWorker struct {
	// Workers are the IDs of the live workers that work on the queue and handle the kind.
	Workers []string
	// InQueue are the live workers that work on the queue but do not handle the kind, and OfKind the live workers that
	// handle the kind but do not work on the queue. Stopping are the workers that would do both, but are shutting down.
	InQueue, OfKind, Stopping []string
	// Unread are the Workers that cannot read pauses, overrides and cancels, and UnreadError is the error of the first of
	// these.
	Unread      []string
	UnreadError string
}

// WhyHandlers is how many handlers of the queue run on the live workers that handle the task's kind there. The
// condition is met if a handler is free. The numbers come from the last heartbeats of these workers, which are up to a
// minute old: see [WorkerHandlers].Age.
type WhyHandlers struct {
	QueueHandlers
	// Every is the average time from the end of one run to the end of the next on these workers, or 0 if no run has ended.
	// It was measured in a period of length Over before their last heartbeats.
	Every, Over time.Duration
}

// WhyLimit is a limit of the task's kind or queue. The condition is met if the limit admits another task, or if a
// worker that defines the limit differently, or does not have it, admits the task.
type WhyLimit struct {
	// Limit is the Go code that makes the limit, such as AtMost(20), and Owner is the limited kind or queue: "kind
	// charge", or "queue default". PerKey reports whether the limit counts the tasks of each key separately. The other
	// fields then describe the limit of the task's key. If Part is not "", the limit counts the tasks of each value of
	// that part of keys separately.
	Limit, Owner string
	PerKey       bool
	Part         string
	// Room is how many more tasks the limit admits.
	Room int
	// Definitions are the different definitions of the limit, if workers that may run the task define it differently, as
	// during a deploy. The other fields describe the definition that admits the most tasks. Without are the workers that
	// do not have the limit, and Admitted reports whether some worker admits the task.
	Definitions []LimitDefinition
	Without     []string
	Admitted    bool
	// Taken has the IDs of the tasks that count toward the limit. For a rate with a burst, these tasks are not known.
	Taken []int64
	// Free is when a rate limit admits the next task. For other limits, Free is the zero time, because they admit the next
	// task when a task ends.
	Free time.Time
}

// WhyNoLimit is a limit per key of the task's kind or queue that does not count the task: the task has no key, or its
// key lacks the part that the limit counts. The condition is always met.
type WhyNoLimit struct {
	// Limit is the Go code that makes the limit, and Owner is the limited kind or queue, as in [WhyLimit]. Part is the
	// part of keys that the limit counts, or "".
	Limit, Owner, Part string
}

// WhySequence is the sequence of the task's key. The condition is met if the task is the next task of the sequence.
type WhySequence struct {
	// Next is the ID of the task that comes next or runs, or 0 if there is none.
	Next int64
	// Runs reports whether the task Next runs. Halted reports whether the task Next is dead and halts the sequence
	// ([falldue.OrderLimit.HaltOnDeath]).
	Runs, Halted bool
	// NextDue is when Next falls due, if that task waits and its policy is known, and NextPaused
	// reports whether a pause is in effect for it.
	NextDue    time.Time
	NextPaused bool
	// Without are the workers on which the kind or queue has no [falldue.InOrder]. They may run the task out of order.
	Without []string
	own     bool
}

// WhyLock describes a lock that another transaction holds on the task's row, such as a transaction that has changed the
// task. The condition is met if the row is not locked. On SQLite, which locks no rows, [Ops.Why] returns no WhyLock.
type WhyLock struct {
	Locked bool
	// Known is false if the server cannot detect such locks, or the database user has no permission to lock rows.
	Known bool
}

// WhyRank is the number of tasks before the task in its lane. The condition is always met: the earlier tasks delay the
// task only while all handlers are busy.
type WhyRank struct {
	Ahead int
	// More reports whether there are more tasks than Ahead, since the count ends at 10,000.
	More bool
}

// Holds implements [Condition].
func (c WhyState) Holds() bool {
	return c.State == falldue.StateBlocked || c.State == falldue.StateOpen || c.State == falldue.StateSnoozed
}

// Holds implements [Condition].
func (c WhyMembers) Holds() bool { return false }

// Holds implements [Condition].
func (c WhyClaim) Holds() bool { return c.Worker == "" || c.Lost }

// Holds implements [Condition].
func (c WhyAttempts) Holds() bool { return c.Most == 0 || c.Attempts < c.Most }

// Holds implements [Condition].
func (c WhyPolicy) Holds() bool {
	return c.Err == nil && (len(c.Unread) == 0 || len(c.Unread) < c.Handling)
}

// At returns when the task falls due: with several rules, the earliest of their times. It returns the zero time if no
// policy is known.
func (c WhyDue) At() (at time.Time) {
	for _, r := range c.Rules {
		if at.IsZero() || r.At.Before(at) {
			at = r.At
		}
	}
	return at
}

// Holds implements [Condition].
func (c WhyExpiry) Holds() bool { return !c.Now.After(c.At) }

// Holds implements [Condition].
func (c WhyDue) Holds() bool { at := c.At(); return !at.IsZero() && !at.After(c.Now) }

// Holds implements [Condition].
func (c WhyPause) Holds() bool { return len(c.Pauses) == 0 }

// Until returns when the last of the pauses ends, or the zero time if one of the pauses does not end automatically.
func (c WhyPause) Until() (last time.Time) {
	for _, p := range c.Pauses {
		if p.Until.IsZero() {
			return time.Time{}
		}
		if p.Until.After(last) {
			last = p.Until
		}
	}
	return last
}

// Holds implements [Condition].
func (c WhyWorker) Holds() bool { return len(c.Workers) > 0 }

// Holds implements [Condition].
func (c WhyHandlers) Holds() bool { return !c.Busy() }

// Holds implements [Condition].
func (c WhyLimit) Holds() bool {
	full := slices.ContainsFunc(c.Definitions, func(d LimitDefinition) bool { return d.Room == 0 })
	return c.Admitted || c.Room > 0 && !full
}

// Holds implements [Condition].
func (WhyNoLimit) Holds() bool { return true }

// Holds implements [Condition].
func (c WhySequence) Holds() bool { return c.own || c.Next == 0 || len(c.Without) > 0 }

// Holds implements [Condition].
func (c WhyLock) Holds() bool { return !c.Locked }

// Holds implements [Condition].
func (WhyRank) Holds() bool { return true }
