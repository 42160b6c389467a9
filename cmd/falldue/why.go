package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
)

func whyCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Say why a task runs, waits or does not run",
		Long: "Say why a task runs, waits or does not run: each condition that a worker's claim\n" +
			"asks of it, with its numbers and whether it holds, and when all of them will hold.\n" +
			"Policies and limits are those that live workers announce. Its row is locked for a\n" +
			"moment, to find out whether somebody else has done so, if this user may do that.\n" +
			"The exit status is 0 if the task runs or a worker may start it now, 6 if not, and 3\n" +
			"if there is no such task.\n\n" + policyFlagHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.inspector(cmd.Context(), policies, func(i *ops.Inspector, _ *falldue.Queue) error {
				w, err := i.Why(cmd.Context(), ids[0])
				if err != nil {
					return err
				}
				if asJSON {
					err = jsonLines(cmd.OutOrStdout()).Encode(whyObject(w))
				} else {
					err = printWhy(screenOf(cmd), w)
				}
				if err == nil && !w.Runnable() && !ops.Running(w.Task) {
					err = finding(exitWaits)
				}
				return err
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object, with the conditions")
	return cmd
}

func whyObject(w ops.Why) any {
	type condition struct {
		Condition string     `json:"condition"`
		Holds     bool       `json:"holds"`
		Ends      *time.Time `json:"ends,omitempty"`
		Text      string     `json:"text"`
	}
	o := struct {
		ID         int64       `json:"id"`
		Kind       string      `json:"kind"`
		Queue      string      `json:"queue"`
		Runnable   bool        `json:"runnable"`
		Running    bool        `json:"running"`
		Next       *time.Time  `json:"next,omitempty"`
		Conditions []condition `json:"conditions"`
	}{w.Task.ID, w.Task.Kind, w.Task.Queue, w.Runnable(), ops.Running(w.Task), set(w.Next()), nil}
	for _, c := range w.Conditions {
		name, text := describe(c, w.Task)
		one := condition{Condition: name, Holds: c.Holds(), Text: text}
		if !one.Holds {
			one.Ends = set(ops.Ends(c))
		}
		o.Conditions = append(o.Conditions, one)
	}
	return o
}

func printWhy(s screen, w ops.Why) error {
	const holdsWidth, nameWidth = 3, 8
	indent := strings.Repeat(" ", holdsWidth+nameWidth+2*gap)
	var b strings.Builder
	b.WriteString(strings.Join(s.wrap(plain(conclusion(w)), 0), "\n") + "\n\n")
	for _, c := range w.Conditions {
		mark, colour := "ok", text.FgGreen
		if !c.Holds() {
			mark, colour = "no", text.FgYellow
		}
		mark = fmt.Sprintf("%-*s", holdsWidth, mark)
		if s.colour {
			mark = colour.Sprint(mark)
		}
		name, about := describe(c, w.Task)
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, nameWidth, name, strings.Join(s.wrap(plain(about), len(indent)), "\n"+indent))
	}
	_, err := io.WriteString(s, b.String())
	return err
}

// conclusion says in a sentence whether a task can run, and when.
func conclusion(w ops.Why) string {
	t := w.Task
	task := fmt.Sprintf("task %d, of kind %s in queue %s", t.ID, t.Kind, t.Queue)
	var names []string
	for _, c := range w.Conditions {
		if name, _ := describe(c, t); !c.Holds() {
			names = append(names, name)
		}
	}
	switch next := w.Next(); {
	case ops.Running(t):
		return task + ", runs"
	case w.Runnable():
		return task + ", can run now: a worker starts it as soon as it has a free handler"
	case t.State == falldue.Blocked:
		return task + ", is blocked: it runs after others, see members"
	case t.State != falldue.Open && t.State != falldue.Snoozed:
		return task + fmt.Sprintf(", is %s and does not run again by itself", t.State)
	case next.IsZero():
		return task + ", cannot run now, and nobody knows when it will: see " + strings.Join(names, ", ")
	default:
		return task + ", cannot run now. It can " + in(next, t.Now) + ", if a handler is free then: see " + strings.Join(names, ", ")
	}
}

// in says when something will be.
func in(t, now time.Time) string {
	return fmt.Sprintf("in %s, at %s", approximate(max(t.Sub(now), 0)), utc(t))
}

// utc formats a time.
func utc(t time.Time) string { return t.Format(time.DateTime) + " UTC" }

// describe returns the name of a condition of a task, and what it says.
func describe(c ops.Condition, t falldue.TaskInfo) (name, about string) {
	switch c := c.(type) {
	case ops.WhyState:
		return "state", stateText(c, t)
	case ops.WhyMembers:
		return "members", membersText(c)
	case ops.WhyClaim:
		return "claim", claimText(c, t)
	case ops.WhyAttempts:
		return "attempts", attemptsText(c)
	case ops.WhyPolicy:
		if c.Err != nil {
			return "policy", "its own policy cannot be read, and workers leave it alone: " + c.Err.Error()
		}
		return "policy", "its own: " + c.Text
	case ops.WhyDue:
		return "due", dueSince(c)
	case ops.WhyPause:
		return "pause", pauseText(c, t)
	case ops.WhyWorker:
		return "worker", workerText(c, t)
	case ops.WhyLimit:
		return "limit", limitText(c, t)
	case ops.WhySequence:
		return "sequence", sequenceText(c)
	case ops.WhyLock:
		return "lock", lockText(c)
	case ops.WhyRank:
		return "rank", rankText(c)
	}
	return "other", fmt.Sprintf("%+v", c)
}

func stateText(c ops.WhyState, t falldue.TaskInfo) string {
	if c.Holds() {
		return string(c.State)
	}
	text := string(c.State) + " since " + at(c.Since, t.Now)
	switch {
	case c.State == falldue.Dead && t.LastError != "":
		return text + ", after " + attempts(t.Attempts) + "; the last error: " + t.LastError + "; \"falldue retry\" lets it run again"
	case c.State != falldue.Done:
		return text + "; \"falldue retry\" lets it run again"
	}
	return text
}

func membersText(c ops.WhyMembers) string {
	n := c.Counts
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{{n.Done, "done"}, {n.Dead, "dead"}, {n.Cancelled, "cancelled"}, {n.Deleted, "deleted"}, {n.Pending, "not ended"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", grouped(part.n), part.what))
		}
	}
	text := fmt.Sprintf("it runs after %s: %s", counted(int(n.Done+n.Dead+n.Cancelled+n.Deleted+n.Pending), "task"), strings.Join(parts, ", "))
	if len(c.WaitsFor) > 0 {
		text += "; it waits for task " + names(c.WaitsFor)
	}
	if len(c.Failed) > 0 {
		text += "; dead or cancelled: task " + names(c.Failed)
	}
	switch c.OnDeath {
	case flow.StaysBlocked:
		if len(c.Failed) > 0 {
			text += ", which \"falldue retry\" lets run again; this one stays blocked until then"
		}
	case flow.RunsAtFirstDeath:
		text += "; it runs at the first death, and is cancelled if there is none"
	default:
		text += "; at a death it " + string(c.OnDeath)
	}
	return text
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func claimText(c ops.WhyClaim, t falldue.TaskInfo) string {
	live := "which was seen within the last minute"
	if !c.Live {
		live = "which was not seen within the last minute"
	}
	switch {
	case c.Worker == "":
		return "nobody runs it"
	case c.Lost:
		return fmt.Sprintf("nobody runs it any more: the lease of %s ended %s; that worker, %s, has died or cannot reach the database", c.Worker, at(c.Until, t.Now), live)
	}
	return fmt.Sprintf("%s has run it since %s; its lease lasts until %s, and is extended while it runs; that worker, %s", c.Worker, at(c.Started, t.Now), at(c.Until, t.Now), live)
}

func attemptsText(c ops.WhyAttempts) string {
	switch {
	case c.Most == 0:
		return fmt.Sprintf("%d used; there is no limit, or none is known", c.Attempts)
	case c.Holds():
		return fmt.Sprintf("%d of %d used", c.Attempts, c.Most)
	}
	return fmt.Sprintf("%d of %d used: none is left, and it becomes dead when it falls due", c.Attempts, c.Most)
}

// dueSince says when a task falls due, and what that is computed from.
func dueSince(c ops.WhyDue) string {
	from := "it was enqueued at " + utc(c.Anchor)
	switch {
	case c.Snoozed:
		from = "it is snoozed until " + utc(c.Anchor)
	case c.Scheduled:
		from = "it was enqueued for " + utc(c.Anchor)
	case !c.Failed.IsZero():
		from = fmt.Sprintf("attempt %d failed at %s", c.Attempts, utc(c.Failed))
		if c.Jitter > 0 {
			from += fmt.Sprintf(", and the wait counts from %s later, the jitter that was drawn", approximate(c.Jitter))
		}
	case c.Attempts > 0:
		from = fmt.Sprintf("its wait after %s counts from %s, as when a lease ends", attempts(c.Attempts), utc(c.Anchor))
	}
	if len(c.Rules) == 0 {
		return from + "; its policy is not known, since no live worker handles its kind; give it with --policy"
	}
	var parts []string
	for _, r := range c.Rules {
		when := "due " + in(r.At, c.Now)
		switch held := "held until " + at(r.From, c.Now) + "; then "; {
		case !r.At.After(c.Now):
			when = "due since " + at(r.At, c.Now)
		case r.From.IsZero():
		case r.At.Equal(r.From):
			when = held + "due"
		default:
			when = held + when
		}
		if r.Delay > 0 {
			when += fmt.Sprintf(", after %s by the policy %s", approximate(r.Delay), r.Policy)
		}
		if len(c.Rules) > 1 {
			when += " of " + strings.Join(r.Workers, " ")
		}
		parts = append(parts, when)
	}
	if o := c.Override; o != nil {
		parts = append(parts, fmt.Sprintf("the policy %q%s is set for %s %s", overrideName(o.Override), stepText(*o), o.Subject, untilText(o.Until)))
	}
	return from + "; " + strings.Join(parts, "; ")
}

func pauseText(c ops.WhyPause, t falldue.TaskInfo) string {
	var parts []string
	for _, p := range c.Pauses {
		text := p.String() + " is paused"
		if p.Who != "" {
			text += " by " + p.Who
		}
		text += " since " + at(p.At, t.Now)
		if p.Until.IsZero() {
			text += ", until somebody resumes it"
		} else {
			text += ", until " + at(p.Until, t.Now)
		}
		if p.Why != "" {
			text += ": " + p.Why
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no pause names it"
	}
	return strings.Join(parts, "; ")
}

// shownNames is how many names of workers or tasks a line has.
const shownNames = 5

// names lists the first of many names.
func names[T any](list []T) string {
	text := strings.Trim(fmt.Sprint(list[:min(len(list), shownNames)]), "[]")
	if more := len(list) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func workerText(c ops.WhyWorker, t falldue.TaskInfo) string {
	if c.Holds() {
		return "live workers of its queue that handle its kind: " + names(c.Workers)
	}
	text := fmt.Sprintf("no live worker handles kind %s in queue %s", t.Kind, t.Queue)
	if len(c.Stopping) > 0 {
		text += "; shutting down: " + names(c.Stopping)
	}
	if len(c.InQueue) > 0 {
		text += "; in its queue, without a handler of its kind: " + names(c.InQueue)
	}
	if len(c.OfKind) > 0 {
		text += "; with a handler of its kind, in other queues: " + names(c.OfKind)
	}
	return text
}

func limitText(c ops.WhyLimit, t falldue.TaskInfo) string {
	text := c.Limit + " of " + c.Owner
	if c.PerKey {
		text += ", for key " + t.Key
	}
	if c.Room == 0 {
		text += ", admits no more task"
	} else {
		text += ", admits " + counted(c.Room, "more task")
	}
	if n := len(c.Taken); n > 0 {
		text += fmt.Sprintf("; %s taken, by task %s", counted(n, "permit"), names(c.Taken))
	}
	if !c.Free.IsZero() {
		text += "; the next one " + in(c.Free, t.Now)
	}
	return text
}

func sequenceText(c ops.WhySequence) string {
	switch {
	case c.Holds():
		return "it is the next one of its key"
	case c.Halted:
		return fmt.Sprintf("task %d comes before it, is dead, and halts the sequence: retry, cancel or delete it", c.Next)
	case c.Runs:
		return fmt.Sprintf("task %d comes before it, and runs", c.Next)
	}
	return fmt.Sprintf("task %d comes before it, and waits", c.Next)
}

func lockText(c ops.WhyLock) string {
	switch {
	case c.Locked:
		return "a transaction has locked its row, and workers pass it over"
	case c.Known:
		return "nobody has locked its row"
	}
	return "whether somebody has locked its row is not known: the server cannot tell, or this user may not lock rows"
}

func rankText(c ops.WhyRank) string {
	switch {
	case c.More:
		return fmt.Sprintf("more than %s tasks of its lane come before it", grouped(int64(c.Ahead)))
	case c.Ahead == 0:
		return "the first of its lane"
	}
	return fmt.Sprintf("%s before it in its lane", grouped(int64(c.Ahead)))
}
