package dash

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/steps"
)

// taskView is a task with its past and its future.
type taskView struct {
	Task     falldue.TaskInfo
	Why      ops.Why
	Attempts []falldue.Attempt
	Progress falldue.Progress
	Steps    []steps.Step
	Policies ops.Policies
	Future   ops.Future
	Members  flow.Counts
	HasFlow  bool // whether it runs before or after others
}

// A page shows up to futureRuns future attempts, and up to shownAttempts past attempts.
const (
	futureRuns    = 8
	shownAttempts = 50
)

// readTask reads a task and all that its page shows.
func (h *Handler) readTask(ctx context.Context, id int64) (v taskView, err error) {
	if v.Why, err = h.ops.Why(ctx, id); err != nil {
		return v, err
	}
	v.Task = v.Why.Task
	list := []falldue.TaskInfo{v.Task}
	if err := h.ops.SetPhases(ctx, list); err != nil {
		return v, err
	}
	v.Task = list[0]
	if v.Attempts, err = h.queue.Attempts(ctx, id); err != nil {
		return v, err
	}
	if v.Progress, err = h.queue.Progress(ctx, id); err != nil {
		return v, err
	}
	if v.Steps, err = steps.Of(ctx, h.queue, id); err != nil {
		return v, err
	}
	if v.Policies, err = h.ops.Policies(ctx, v.Task.Policy); err != nil {
		return v, err
	}
	if v.Future, err = v.Policies.Ahead(v.Task, futureRuns); err != nil {
		return v, err
	}
	if v.Members, err = flow.CountsOf(ctx, h.queue, id); err != nil {
		return v, err
	}
	around, err := flow.GraphOf(ctx, h.queue, id, 2)
	v.HasFlow = len(around.Edges) > 0 || around.More
	return v, err
}

// taskPageView is a task as a user may see it.
type taskPageView struct {
	taskView
	Timeout                  time.Duration // of the kind, or 0
	Age                      time.Duration
	Err                      *trouble
	MayRead                  bool
	Payload, Result          shown
	Links                    []Link
	Earlier                  int // attempts that are not shown
	Target                   Target
	Editable                 bool
	Policy, Code, Overridden string
	Override                 ops.Override

	redact func(json.RawMessage) json.RawMessage
}

// shown is JSON as a page shows it.
type shown struct {
	Text string
	Cut  bool
}

// maxShown is the number of bytes of a payload that a page shows.
const maxShown = 64 << 10

func taskPage(in *request) (page, error) {
	id, err := strconv.ParseInt(in.query.Get("id"), 10, 64)
	if err != nil {
		return page{}, mistake("The id " + strconv.Quote(in.query.Get("id")) + " is not a number.")
	}
	return taskPageOf(in, id)
}

func taskPageOf(in *request, id int64) (page, error) {
	var r reading[taskView]
	var p reading[ops.Pulse]
	together(func() { r = in.h.reads.task.get(in.r.Context(), strconv.FormatInt(id, 10)) }, func() { p = in.h.reads.pulse.get(in.r.Context()) })
	if !r.Known {
		return page{}, r.Err
	}
	t := r.Value.Task
	v := taskPageView{taskView: r.Value, Timeout: timeoutOf(t, p.Value.Workers), Age: r.Age, Err: troubleOf(r.Err), Target: Target{Queue: t.Queue, Kind: t.Kind, ID: t.ID}}
	v.MayRead = in.allowed(ViewPayload, v.Target)
	v.redact = func(data json.RawMessage) json.RawMessage { return in.h.redacted(t.Kind, data) }
	if v.MayRead {
		payload := in.h.redacted(t.Kind, t.Payload)
		v.Payload, v.Result = showJSON(payload), showJSON(in.h.redacted(t.Kind, t.Result))
		v.Editable = bytes.Equal(payload, t.Payload) && len(payload) > 0 && !v.Payload.Cut && visible(string(payload)) == string(payload) && (finished(t.State) || t.ClaimedBy == "" && t.State != falldue.StateBlocked)
	}
	if !v.MayRead {
		v.Why.Task.LastError = "" // the conditions would quote it
	}
	if n := len(v.Attempts) - shownAttempts; n > 0 {
		v.Earlier, v.Attempts = n, v.Attempts[n:]
	}
	if in.h.options.Links != nil {
		v.Links = slices.Clone(in.h.options.Links(t))
	}
	if code, known := v.Policies.Code(t); known {
		v.Code = code.String()
	}
	if policy, known := v.Policies.Of(t); known {
		v.Policy = policy.String()
	}
	if o, ok := v.Policies.Override(t); ok {
		v.Override, v.Overridden = o, ops.OverrideName(o.Formula)
	}
	return page{Title: "Task " + strconv.FormatInt(id, 10), Nav: "tasks", Live: true, Regions: []region{
		{ID: "task", Template: "task", Data: v},
		{ID: "task-actions", Template: "task-actions", Data: v, Fixed: true},
		{ID: "timeline", Template: "timeline", Data: v},
		{ID: "steps", Template: "steps", Data: v},
		{ID: "why", Template: "why", Data: v},
		{ID: "payload", Template: "payload", Data: v},
	}}, nil
}

// timeoutOf returns the timeout of a task's kind on the worker that runs the task. If no worker runs it, timeoutOf
// returns the longest timeout of all workers, or 0 if none is known.
func timeoutOf(t falldue.TaskInfo, workers []ops.Worker) (longest time.Duration) {
	for _, w := range workers {
		if w.ID == t.ClaimedBy {
			return w.Kinds[t.Kind].Timeout
		}
		longest = max(longest, w.Kinds[t.Kind].Timeout)
	}
	return longest
}

// StepText returns the result or the cursor of a step as a user may see it.
func (v taskPageView) StepText(s steps.Step) string {
	switch {
	case !v.MayRead:
		return ""
	case s.DecodeError != nil:
		return s.DecodeError.Error()
	case s.Done:
		return string(v.redact(s.Result))
	}
	return string(v.redact(s.Cursor))
}

// redacted returns JSON of a task as pages may show it.
func (h *Handler) redacted(kind string, data json.RawMessage) json.RawMessage {
	if h.options.Redact == nil || data == nil {
		return data
	}
	return h.options.Redact(kind, slices.Clone(data))
}

// showJSON returns JSON in lines.
func showJSON(data json.RawMessage) (s shown) {
	if len(data) == 0 {
		return s
	}
	var b bytes.Buffer
	if len(data) > maxShown || json.Indent(&b, data, "", "  ") != nil {
		b.Reset()
		b.Write(data[:min(len(data), maxShown)])
		s.Cut = len(data) > maxShown
	}
	s.Text = visible(strings.ToValidUTF8(b.String(), "…"))
	return s
}

func finished(s falldue.State) bool {
	return s == falldue.StateDone || s == falldue.StateDead || s == falldue.StateCancelled
}

// Finished reports whether the task is finished.
func (v taskPageView) Finished() bool { return finished(v.Task.State) }

// Running reports whether a worker runs the task.
func (v taskPageView) Running() bool { return ops.Running(v.Task) }

// Waits reports whether the task waits and could run.
func (v taskPageView) Waits() bool {
	return (v.Task.State == falldue.StateOpen || v.Task.State == falldue.StateSnoozed) && !v.Running()
}

// Limit is the number of attempts that the task has in all, or 0.
func (v taskPageView) Limit() int {
	if v.Task.MaxAttempts > 0 {
		return v.Task.MaxAttempts
	}
	policy, known := v.Policies.Of(v.Task)
	if !known {
		return 0
	}
	return policy.MaxAttempts()
}

// bound is a limit in time of a task. At is zero for a limit without a known end.
type bound struct {
	Name, Text string
	At         time.Time
}

// Bounds are the times at which the task's run, its wait or its retries end, and its own timeout.
func (v taskPageView) Bounds() []bound {
	policy, known := v.Policies.Of(v.Task)
	return boundsOf(v.Task, v.Timeout, policy, known)
}

// boundsOf returns the bounds of a task with its kind's timeout, and under a policy, if the policy is known.
func boundsOf(t falldue.TaskInfo, timeout time.Duration, policy backoff.Policy, known bool) (list []bound) {
	running := ops.Running(t)
	if t.Timeout > 0 || timeout > 0 && !finished(t.State) {
		b := bound{Name: "Timeout", Text: durText(cmp.Or(t.Timeout, timeout)) + " for each run"}
		if t.Timeout > 0 {
			b.Text += ", set for this task"
		}
		if running {
			b.At = t.AttemptedAt.Add(cmp.Or(t.Timeout, timeout))
		}
		list = append(list, b)
	}
	if running {
		list = append(list, bound{Name: "Lease ends", Text: "unless its worker extends it", At: t.UpdatedAt})
	}
	if finished(t.State) {
		return list
	}
	if at := expiresAt(t, policy); !at.IsZero() {
		list = append(list, bound{Name: "Expires", Text: "cancelled if it has not started by then", At: at})
	}
	if !known {
		return list
	}
	if d := policy.MaxElapsed(); d > 0 && !t.FirstAttemptedAt.IsZero() {
		list = append(list, bound{Name: "No retry after", Text: durText(d) + " after its first attempt", At: t.FirstAttemptedAt.Add(d)})
	}
	return list
}

// expiresAt returns when a task expires, or the zero time. A policy that is not known is empty.
func expiresAt(t falldue.TaskInfo, policy backoff.Policy) (at time.Time) {
	if t.State != falldue.StateOpen || t.Attempts > 0 {
		return at
	}
	at = t.ExpireAt
	if d := policy.StartWithin(); d > 0 {
		if end := t.UpdatedAt.Add(d); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// event is a point of the timeline.
type event struct {
	Class, Title, Text, Stack string
	At, Until                 time.Time
	Attempt                   int
	Worker                    string
	Took                      time.Duration
	// Gap is the time since the event before.
	Gap time.Duration
}

// Past are the past events, oldest first.
func (v taskPageView) Past() (list []event) {
	t := v.Task
	list = append(list, event{Class: "made", Title: "Enqueued", At: t.CreatedAt})
	for _, a := range v.Attempts {
		e := event{Class: "failed", Title: "Attempt " + strconv.Itoa(a.Attempt) + " failed", At: a.FinishedAt, Attempt: a.Attempt, Worker: a.Worker, Took: a.Duration}
		switch a.Outcome {
		case falldue.OutcomeLost:
			e.Class, e.Title = "lost", "Attempt "+strconv.Itoa(a.Attempt)+" was lost: its worker ended"
		case falldue.OutcomeDead, falldue.OutcomeDiscarded:
			e.Class, e.Title = "dead", "Attempt "+strconv.Itoa(a.Attempt)+" failed, and the task is dead"
		}
		if v.MayRead {
			e.Text, e.Stack = a.Error, a.Stack
		}
		list = append(list, e)
	}
	switch {
	case v.Running():
		list = append(list, event{Class: "running", Title: "Attempt " + strconv.Itoa(t.Attempts) + " runs", At: t.AttemptedAt, Worker: t.ClaimedBy})
	case t.State == falldue.StateDead && len(v.Attempts) == 0: // its attempts are deleted, or were never kept
		e := event{Class: "dead", Title: "Dead", At: t.UpdatedAt}
		if v.MayRead {
			e.Text = t.LastError
		}
		list = append(list, e)
	case t.State == falldue.StateDone, t.State == falldue.StateCancelled:
		list = append(list, event{Class: string(t.State), Title: strings.ToUpper(string(t.State[:1])) + string(t.State[1:]), At: t.UpdatedAt})
	}
	for i := 1; i < len(list); i++ {
		list[i].Gap = max(list[i].At.Sub(list[i-1].At), 0)
	}
	return list
}

// Coming are the attempts to come, if all fail.
func (v taskPageView) Coming() (list []event) {
	before := v.Task.Now
	for _, r := range v.Future.Runs {
		e := event{Class: "coming", Title: "Attempt " + strconv.Itoa(r.Attempt), At: r.Earliest, Until: r.Latest, Gap: max(r.Earliest.Sub(before), 0)}
		before = r.Earliest
		list = append(list, e)
	}
	return list
}

// condition is one of the conditions under which a worker runs the task.
type condition struct {
	Name, Text string
	Holds      bool
}

// Conditions are the conditions of a claim, in words.
func (v taskPageView) Conditions() (list []condition) {
	for _, c := range v.Why.Conditions {
		list = append(list, condition{c.Name(), c.Describe(v.Why.Task), c.Holds()})
	}
	return list
}

// ProgressText describes the handler's progress.
func (v taskPageView) ProgressText() string {
	p := v.Progress
	if p.UpdatedAt.IsZero() {
		return ""
	}
	text := strconv.Itoa(int(100*p.Fraction+0.5)) + "%"
	if p.Message != "" && v.MayRead {
		text += ", " + p.Message
	}
	if v.Task.AttemptedAt.After(p.UpdatedAt) {
		text += ", in an earlier run"
	}
	return text + ", " + relative(p.UpdatedAt, v.Task.Now)
}

// MetadataNames are the names of the task's metadata.
func (v taskPageView) MetadataNames() []string { return sorted(v.Task.Metadata) }
