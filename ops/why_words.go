package ops

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/words"
)

// Conclusion returns a sentence that states whether the task can run, and when.
func (w Why) Conclusion() string {
	t := w.Task
	task := fmt.Sprintf("task %d, of kind %s in queue %s", t.ID, t.Kind, t.Queue)
	var names []string
	for _, c := range w.Conditions {
		if !c.Holds() {
			names = append(names, c.Name())
		}
	}
	switch next := w.Next(); {
	case Running(t):
		return task + ", is running"
	case w.Runnable():
		return task + ", can run now: a worker starts it as soon as it has a free handler"
	case t.State == falldue.StateBlocked:
		return task + ", is blocked: it runs after other tasks, see members"
	case t.State != falldue.StateOpen && t.State != falldue.StateSnoozed:
		return task + fmt.Sprintf(", is %s and is not retried", t.State)
	case slices.Equal(names, []string{WhyHandlers{}.Name()}):
		return task + ", cannot run now: all handlers for it are busy. A worker starts it when a handler is free: see handlers, rank"
	case next.IsZero():
		return task + ", cannot run now. When it can run is unknown: see " + strings.Join(names, ", ")
	default:
		return task + ", cannot run now. It can run " + words.In(next, t.Now) + ", if a handler is free then: see " + strings.Join(names, ", ")
	}
}

// Name implements [Condition].
func (WhyState) Name() string { return "state" }

// Name implements [Condition].
func (WhyMembers) Name() string { return "members" }

// Name implements [Condition].
func (WhyClaim) Name() string { return "claim" }

// Name implements [Condition].
func (WhyAttempts) Name() string { return "attempts" }

// Name implements [Condition].
func (WhyPolicy) Name() string { return "policy" }

// Name implements [Condition].
func (WhyDue) Name() string { return "due" }

// Name implements [Condition].
func (WhyExpiry) Name() string { return "expiry" }

// Name implements [Condition].
func (WhyPause) Name() string { return "pause" }

// Name implements [Condition].
func (WhyWorker) Name() string { return "worker" }

// Name implements [Condition].
func (WhyHandlers) Name() string { return "handlers" }

// Name implements [Condition].
func (WhyLimit) Name() string { return "limit" }

// Name implements [Condition].
func (WhyNoLimit) Name() string { return "limit" }

// Name implements [Condition].
func (WhySequence) Name() string { return "sequence" }

// Name implements [Condition].
func (WhyLock) Name() string { return "lock" }

// Name implements [Condition].
func (WhyRank) Name() string { return "rank" }

// Describe implements [Condition].
func (c WhyState) Describe(t falldue.TaskInfo) string {
	if c.Holds() {
		return string(c.State)
	}
	text := string(c.State) + " since " + words.At(c.Since, t.Now)
	switch {
	case c.State == falldue.StateDead && t.LastError != "":
		return text + ", after " + attempts(t.Attempts) + "; the last error: " + t.LastError + "; \"falldue retry\" retries it"
	case c.State == falldue.StateCancelled && t.LastError != "":
		return text + "; the reason or last error: " + t.LastError + "; \"falldue retry\" retries it"
	case c.State != falldue.StateDone:
		return text + "; \"falldue retry\" retries it"
	}
	return text
}

// tasks names tasks, such as "tasks 3, 4".
func tasks(ids []int64) string {
	if len(ids) == 1 {
		return "task " + words.Names(ids)
	}
	return "tasks " + words.Names(ids)
}

// Describe implements [Condition].
func (c WhyMembers) Describe(_ falldue.TaskInfo) string {
	n := c.Counts
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{{n.Done, "done"}, {n.Dead, "dead"}, {n.Cancelled, "cancelled"}, {n.Deleted, "deleted"}, {n.Pending, "unfinished"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", words.Number(part.n), part.what))
		}
	}
	text := fmt.Sprintf("it runs after %s: %s", words.Count(n.Done+n.Dead+n.Cancelled+n.Deleted+n.Pending, "task"), strings.Join(parts, ", "))
	if len(c.WaitsFor) > 0 {
		text += "; waiting for " + tasks(c.WaitsFor)
	}
	if len(c.Failed) > 0 {
		text += "; dead or cancelled: " + tasks(c.Failed)
	}
	switch c.OnDeath {
	case flow.StaysBlocked:
		if len(c.Failed) > 0 {
			text += "; this task stays blocked until \"falldue retry\" has retried " + tasks(c.Failed)
		}
	case flow.RunsAtFirstDeath:
		text += "; this task runs when one of them is dead, and is cancelled if none dies"
	default:
		text += "; if one of them fails, this task " + string(c.OnDeath)
	}
	return text
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// Describe implements [Condition].
func (c WhyClaim) Describe(t falldue.TaskInfo) string {
	live := "the worker sent a heartbeat within the last minute"
	if !c.Live {
		live = "the worker sent no heartbeat within the last minute"
	}
	switch {
	case c.Worker == "":
		return "no worker runs it"
	case c.Lost && c.Live:
		return fmt.Sprintf("no worker runs it any more: the lease of worker %s ended %s; %s, so it was suspended or could not reach the database until then", c.Worker, words.At(c.Until, t.Now), live)
	case c.Lost:
		return fmt.Sprintf("no worker runs it any more: the lease of worker %s ended %s; %s, so it has died or cannot reach the database", c.Worker, words.At(c.Until, t.Now), live)
	}
	return fmt.Sprintf("worker %s has run it since %s; the lease lasts until %s, and is extended while the task runs; %s", c.Worker, words.At(c.Started, t.Now), words.At(c.Until, t.Now), live)
}

// Describe implements [Condition].
func (c WhyAttempts) Describe(_ falldue.TaskInfo) string {
	switch {
	case c.Most == 0:
		return fmt.Sprintf("%d used; there is no limit, or none is known", c.Attempts)
	case c.Holds():
		return fmt.Sprintf("%d of %d used", c.Attempts, c.Most)
	}
	return fmt.Sprintf("%d of %d used: none is left, and the task becomes dead when it falls due", c.Attempts, c.Most)
}

// Describe implements [Condition].
func (c WhyPolicy) Describe(falldue.TaskInfo) string {
	if c.Err != nil {
		return "the per-task policy cannot be read, so no worker runs the task: " + c.Err.Error()
	}
	text := "per-task policy " + c.Text
	if len(c.Unread) > 0 {
		text += fmt.Sprintf("; %d of %s of its queue and kind cannot read the policy, and do not run the task (%s): %s",
			len(c.Unread), words.Count(int64(c.Handling), "worker"), words.Names(c.Unread), c.UnreadError)
	}
	return text
}

// Describe implements [Condition].
func (c WhyDue) Describe(_ falldue.TaskInfo) string {
	from := "it was enqueued at " + words.Moment(c.Anchor)
	switch {
	case c.Snoozed:
		from = "it is snoozed until " + words.Moment(c.Anchor)
	case c.Scheduled:
		from = "it was enqueued for " + words.Moment(c.Anchor)
	case !c.Failed.IsZero():
		from = fmt.Sprintf("attempt %d failed at %s", c.Attempts, words.Moment(c.Failed))
		if c.Jitter > 0 {
			from += fmt.Sprintf(", and its wait starts %s later because of jitter", words.Span(c.Jitter))
		}
	case c.Attempts > 0:
		from = fmt.Sprintf("its wait after %s started at %s", attempts(c.Attempts), words.Moment(c.Anchor))
	}
	if len(c.Rules) == 0 {
		return from + "; its policy is unknown because no live worker handles its kind: set the policy with --policy"
	}
	var parts []string
	for _, r := range c.Rules {
		when := "due " + words.In(r.At, c.Now)
		switch held := "held until " + words.At(r.From, c.Now) + "; then "; {
		case !r.At.After(c.Now):
			when = "due since " + words.At(r.At, c.Now)
		case r.From.IsZero():
		case r.At.Equal(r.From):
			when = held + "due"
		default:
			when = held + when
		}
		if r.Delay > 0 {
			when += fmt.Sprintf(", after a delay of %s under the policy %q", words.Span(r.Delay), r.Policy)
		}
		switch {
		case r.Refused != "":
			when += " on " + words.Names(r.Workers) + ", which cannot apply the override: " + r.Refused
		case len(c.Rules) > 1:
			when += " on " + strings.Join(r.Workers, " ")
		}
		parts = append(parts, when)
	}
	if o := c.Override; o != nil {
		parts = append(parts, fmt.Sprintf("the policy %q%s is set for %s %s", OverrideName(o.Formula), StepText(*o), o.Subject, endText(o.Until)))
	}
	return from + "; " + strings.Join(parts, "; ")
}

// endText describes when an override ends.
func endText(until time.Time) string {
	if until.IsZero() {
		return "until it is cleared"
	}
	return "until " + words.Here(until, time.Local)
}

// Describe implements [Condition].
func (c WhyExpiry) Describe(falldue.TaskInfo) string {
	by := "its policy"
	if c.Own {
		by = "its ExpireAt"
	}
	if !c.Holds() {
		return fmt.Sprintf("%s required it to start by %s: it is cancelled instead of run", by, words.At(c.At, c.Now))
	}
	return fmt.Sprintf("%s requires it to start by %s", by, words.At(c.At, c.Now))
}

// Describe implements [Condition].
func (c WhyPause) Describe(t falldue.TaskInfo) string {
	var parts []string
	for _, p := range c.Pauses {
		text := p.String() + " is paused"
		if p.Who != "" {
			text += " by " + p.Who
		}
		text += " since " + words.At(p.At, t.Now)
		if p.Until.IsZero() {
			text += ", until it is resumed"
		} else {
			text += ", until " + words.At(p.Until, t.Now)
		}
		if p.Why != "" {
			text += ": " + p.Why
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no pause applies to it"
	}
	return strings.Join(parts, "; ")
}

// Describe implements [Condition].
func (c WhyWorker) Describe(t falldue.TaskInfo) string {
	if c.Holds() {
		text := "live workers of its queue that handle its kind: " + words.Names(c.Workers)
		if len(c.Unread) > 0 {
			text += "; of these " + words.Names(c.Unread) + " cannot read pauses, overrides and cancellations, and apply the last known ones: " + c.UnreadError
		}
		return text
	}
	text := fmt.Sprintf("no live worker handles kind %s in queue %s", t.Kind, t.Queue)
	if len(c.Stopping) > 0 {
		text += "; shutting down: " + words.Names(c.Stopping)
	}
	if len(c.InQueue) > 0 {
		text += "; in its queue, without a handler of its kind: " + words.Names(c.InQueue)
	}
	if len(c.OfKind) > 0 {
		text += "; with a handler of its kind, in other queues: " + words.Names(c.OfKind)
	}
	return text
}

// Describe implements [Condition].
func (c WhyHandlers) Describe(falldue.TaskInfo) string {
	each := make([]string, len(c.Workers))
	for k, w := range c.Workers {
		each[k] = fmt.Sprintf("%d of %d on %s", w.Running, w.Concurrency, w.Worker)
	}
	which := fmt.Sprintf("%d of %s", c.Running, words.Count(int64(c.Concurrency), "handler"))
	if c.Busy() {
		which = "all " + words.Count(int64(c.Concurrency), "handler")
	}
	text := fmt.Sprintf("%s of queue %s for its kind were busy at the last heartbeats of their workers, up to %s ago", which, c.Queue, words.Span(c.Age()))
	if len(each) > 1 {
		more := ""
		if len(each) > shownWorkers {
			more = fmt.Sprintf(" and %d more workers", len(each)-shownWorkers)
		}
		text += ": " + strings.Join(each[:min(len(each), shownWorkers)], ", ") + more
	}
	switch before := "; in the " + words.Span(c.Over) + " before, these workers finished "; {
	case c.Every >= 10*time.Millisecond:
		text += before + "a run every " + words.Span(c.Every)
	case c.Every > 0:
		text += before + words.Count(int64(time.Second/c.Every), "run") + " per second"
	}
	return text
}

// shownWorkers is how many workers a text names.
const shownWorkers = 5

// Describe implements [Condition].
func (c WhyLimit) Describe(t falldue.TaskInfo) string {
	text := c.Limit + " of " + c.Owner
	switch {
	case c.Part != "":
		value, _ := storable.Part(t.Key, c.Part)
		text += ", for " + c.Part + "=" + value
	case c.PerKey:
		text += ", for key " + t.Key
	}
	if c.Room == 0 {
		text += ", admits no more tasks"
	} else {
		text += ", admits " + words.Count(int64(c.Room), "more task")
	}
	if n := len(c.Taken); n > 0 {
		text += fmt.Sprintf("; %s taken by %s", words.Count(int64(n), "permit"), tasks(distinct(c.Taken)))
	}
	if !c.Free.IsZero() {
		text += "; the next permit " + words.In(c.Free, t.Now)
	}
	return text + differences(c.Definitions, c.Without)
}

// Describe implements [Condition].
func (c WhyNoLimit) Describe(t falldue.TaskInfo) string {
	text := c.Limit + " of " + c.Owner + " does not count this task: "
	if t.Key == "" {
		return text + "the task has no key"
	}
	return text + "the task's key " + t.Key + " has no part " + c.Part
}

// differences describes how workers define a limit, if they differ.
func differences(definitions []LimitDefinition, without []string) (text string) {
	if len(definitions)+len(without) == 0 {
		return ""
	}
	for _, d := range definitions {
		text += ", " + d.Text + " on " + words.Names(d.Workers)
	}
	if len(without) > 0 {
		text += ", no such limit on " + words.Names(without)
	}
	return "; workers differ: " + strings.TrimPrefix(text, ", ")
}

// distinct returns each of a list's IDs once. A task has a permit of a rate for each of its attempts.
func distinct(ids []int64) (list []int64) {
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// Describe implements [Condition].
func (c WhySequence) Describe(t falldue.TaskInfo) string {
	switch {
	case len(c.Without) > 0:
		return "workers differ: no order on " + words.Names(c.Without) + ", which may run it before its turn"
	case c.Holds():
		return "it is the next task of its key"
	case c.Halted:
		return fmt.Sprintf("task %d comes before it, is dead, and halts the sequence: retry or delete task %[1]d", c.Next)
	case c.Runs:
		return fmt.Sprintf("task %d comes before it, and is running", c.Next)
	}
	next := strconv.FormatInt(c.Next, 10)
	text := "task " + next + " comes before it, and is waiting"
	switch {
	case c.NextPaused:
		text += ": task " + next + " is paused"
	case c.NextDue.IsZero():
	case c.NextDue.After(t.Now):
		text += ": task " + next + " is due " + words.In(c.NextDue, t.Now) + ", and this task can run once task " + next + " is done"
	default:
		text += ": task " + next + " has been due for " + words.Span(t.Now.Sub(c.NextDue)) + "; see \"falldue why " + next + "\""
	}
	return text
}

// Describe implements [Condition].
func (c WhyLock) Describe(_ falldue.TaskInfo) string {
	switch {
	case c.Locked:
		return "a transaction has locked its row, and workers skip it"
	case c.Known:
		return "no transaction holds its row lock"
	}
	return "it is unknown whether a transaction holds its row lock: the server cannot tell, or this user cannot lock rows"
}

// Describe implements [Condition].
func (c WhyRank) Describe(_ falldue.TaskInfo) string {
	switch {
	case c.More:
		return fmt.Sprintf("more than %s tasks before it in its lane (tasks with the same delay)", words.Number(int64(c.Ahead)))
	case c.Ahead == 0:
		return "the first of its lane (tasks with the same delay)"
	}
	return words.Count(int64(c.Ahead), "task") + " before it in its lane (tasks with the same delay)"
}
