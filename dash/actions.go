package dash

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// aboutTask prepares a change of the task that the form names, and checks the user's permission.
func (in *request) aboutTask(a Action, message string) (t falldue.TaskInfo, d done, err error) {
	id, err := strconv.ParseInt(in.r.PostFormValue("id"), 10, 64)
	if err != nil {
		return t, d, mistake("The ID of the task is missing.")
	}
	// A refusal must not reveal whether the task exists.
	if err := in.need(View, Target{ID: id}); err != nil {
		return t, d, err
	}
	t, found := in.h.queue.Task(in.r.Context(), id)
	target := Target{Queue: t.Queue, Kind: t.Kind, ID: id}
	d = done{to: link("task", "id", strconv.FormatInt(id, 10), "done", message), entry: Entry{Target: target, Why: in.r.PostFormValue("why")}}
	if err := in.need(a, target); err != nil {
		return t, d, err
	}
	if found == nil {
		found = in.unchanged(t)
	}
	return t, d, found
}

// unchanged returns an error if the task has run since the user saw it, or has finished although the user saw a task
// that had not. Forms without these fields change the task in any case.
func (in *request) unchanged(t falldue.TaskInfo) error {
	fence, state := in.r.PostFormValue("fence"), falldue.State(in.r.PostFormValue("state"))
	if fence != "" && fence != strconv.FormatInt(t.Fence, 10) || state != "" && finished(state) != finished(t.State) {
		return fmt.Errorf("%w: task %d is %s, and has changed since you saw it", falldue.ErrWrongState, t.ID, t.State)
	}
	return nil
}

// fence returns the fence of the task that the user saw, or nil if the form lacks it.
func (in *request) fence() *int64 {
	fence, err := strconv.ParseInt(in.r.PostFormValue("fence"), 10, 64)
	if err != nil {
		return nil
	}
	return &fence
}

func retryTask(in *request) (done, error) {
	t, d, err := in.aboutTask(Retry, "retried")
	if err != nil {
		return d, err
	}
	return d, in.h.queue.Retry(in.r.Context(), t.ID, falldue.RetryOptions{State: t.State, Fence: in.fence()})
}

func runTask(in *request) (done, error) {
	t, d, err := in.aboutTask(Run, "run")
	if err != nil {
		return d, err
	}
	return d, in.h.ops.RunNow(in.r.Context(), t.ID)
}

func editTask(in *request) (done, error) {
	t, d, err := in.aboutTask(Edit, "edited")
	if err != nil {
		return d, err
	}
	if err := in.need(ViewPayload, d.entry.Target); err != nil {
		return d, err
	}
	args := json.RawMessage(in.r.PostFormValue("args"))
	if !json.Valid(args) {
		return d, mistake("The arguments are not valid JSON. Nothing was changed.")
	}
	if finished(t.State) {
		return d, in.h.queue.Retry(in.r.Context(), t.ID, falldue.RetryOptions{State: t.State, Fence: in.fence(), Args: args})
	}
	d.to = link("task", "id", strconv.FormatInt(t.ID, 10), "done", "args")
	return d, in.h.ops.ChangeTask(in.r.Context(), t.ID, ops.TaskChange{Args: args, Fence: in.fence()})
}

func cancelTask(in *request) (done, error) {
	t, d, err := in.aboutTask(Cancel, "cancelled")
	if err != nil {
		return d, err
	}
	return d, in.h.queue.Cancel(in.r.Context(), t.ID)
}

func deleteTask(in *request) (done, error) {
	t, d, err := in.aboutTask(Delete, "deleted")
	if err != nil {
		return d, err
	}
	d.to = "tasks?done=deleted"
	return d, in.h.queue.Delete(in.r.Context(), t.ID, falldue.DeleteOptions{})
}

// aboutSubject prepares a change of the subject that the form names, and checks the user's permission.
func (in *request) aboutSubject(a Action, to string) (s falldue.Subject, d done, err error) {
	text := in.r.PostFormValue("subject")
	d = done{to: to, entry: Entry{Target: Target{Name: text}, Why: in.r.PostFormValue("why")}}
	s, invalid := falldue.ParseSubject(text)
	d.entry.Target.Queue, d.entry.Target.Kind = s.Queue, s.Kind
	if err := in.need(a, d.entry.Target); err != nil {
		return s, d, err
	}
	return s, d, invalid
}

func pauseSubject(in *request) (done, error) {
	s, d, err := in.aboutSubject(Pause, "queues?done=paused")
	if err != nil {
		return d, err
	}
	o := falldue.PauseOptions{Note: in.note()}
	if until := in.r.PostFormValue("until"); until != "" {
		now, err := in.h.ops.Now(in.r.Context())
		if err != nil {
			return d, err
		}
		if o.Until, err = ops.ParseUntil(until, now, time.Now()); err != nil {
			return d, mistake("until: " + err.Error())
		}
		d.entry.Detail = "until " + o.Until.Format(time.RFC3339)
	}
	return d, in.h.queue.Pause(in.r.Context(), s, o)
}

func resumeSubject(in *request) (done, error) {
	s, d, err := in.aboutSubject(Pause, "queues?done=resumed")
	if err != nil {
		return d, err
	}
	d.entry.Detail = "resume"
	return d, in.h.queue.Resume(in.r.Context(), s, in.note())
}

// errUnsure asks the user to confirm the effect of a change.
func errUnsure(e ops.Effect) error {
	return mistake(fmt.Sprintf("Nothing was changed. The change would make %d waiting tasks due immediately, leave %d without an attempt, and affect %d with an unknown policy. Click \"Show the effect on the backlog\", then tick \"I have seen the effect\".",
		e.AtOnce, e.Exhausted+e.UnknownExhausted, e.Unknown))
}

func setPolicy(in *request) (done, error) {
	s, d, err := in.aboutSubject(SetPolicy, link("policy", "subject", in.r.PostFormValue("subject"), "done", "set")+"#uptake")
	if err != nil {
		return d, err
	}
	draft, err := readDraft(in.r.PostForm)
	if err != nil {
		return d, err
	}
	switch {
	case !draft.Ready():
		return d, mistake("The override cannot be set: " + draft.Perhaps)
	case draft.Why == "":
		return d, mistake("Enter a reason. Everyone who sees the override sees the reason, too.")
	}
	ctx := in.r.Context()
	p, _, err := in.profile(ctx, s)
	if err != nil {
		return d, err
	}
	o, err := draft.override(p)
	if err != nil {
		return d, err
	}
	d.entry.Detail = ops.OverrideName(o.Formula)
	if !o.Until.IsZero() {
		d.entry.Detail += " until " + o.Until.Format(time.RFC3339)
	}
	effect, err := p.Impact(o, 0)
	if err != nil {
		return d, err
	}
	if effect.Drastic(askAbove) && in.r.PostFormValue("sure") == "" {
		return d, errUnsure(effect)
	}
	return d, in.h.ops.SetPolicy(ctx, s, o.Formula, ops.OverrideOptions{IncludeOwn: o.IncludeOwn, Steps: o.Steps[1:], Until: o.Until, Note: in.note()})
}

func clearPolicy(in *request) (done, error) {
	s, d, err := in.aboutSubject(SetPolicy, link("policy", "subject", in.r.PostFormValue("subject"), "done", "cleared")+"#uptake")
	if err != nil {
		return d, err
	}
	d.entry.Detail = "clear"
	p, _, err := in.profile(in.r.Context(), s)
	if err != nil {
		return d, err
	}
	effect, err := p.ClearImpact(s, 0)
	if err != nil {
		return d, err
	}
	if effect.Drastic(askAbove) && in.r.PostFormValue("sure") == "" {
		return d, errUnsure(effect)
	}
	return d, in.h.ops.ClearPolicy(in.r.Context(), s, in.note())
}

// errClosed refuses changes of many tasks once the handler is closed.
var errClosed = errors.New("this page is shutting down")
