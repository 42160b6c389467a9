package dash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// User is the sender of a request.
type User struct {
	// Name is logged, and stored as the author of each change.
	Name string
}

// Action is something that a user may be allowed to do.
type Action string

// The actions.
const (
	View Action = "view" // see all pages
	// ViewPayload lets a user see payloads, results, metadata, errors and stacks, and search in payloads.
	ViewPayload Action = "view-payload"
	Retry       Action = "retry"
	Run         Action = "run"  // make a waiting task due
	Edit        Action = "edit" // change the arguments of a waiting task, or of a finished task that is retried
	Cancel      Action = "cancel"
	Delete      Action = "delete"
	Pause       Action = "pause"      // pause and resume
	SetPolicy   Action = "set-policy" // set and clear overrides of policies
	Schedule    Action = "schedule"   // pause, resume, trigger and remove schedules
	Enqueue     Action = "enqueue"    // enqueue a task
)

// Actions lists all actions that change something.
func Actions() []Action {
	return []Action{Retry, Run, Edit, Cancel, Delete, Pause, SetPolicy, Schedule, Enqueue}
}

// Target is what an action applies to. Unknown fields are zero, for example when a page asks whether to show a button
// before the user has chosen a task.
type Target struct {
	Queue, Kind string
	// ID is the ID of a single task. Bulk reports that the action applies to all matching tasks.
	ID   int64
	Bulk bool
	// Name is the name of a schedule, or the text of a [falldue.Subject], such as kind:charge.
	Name string
}

// Entry describes a change that a user made or tried to make.
type Entry struct {
	At     time.Time // when the change was made, by this machine's clock
	User   User
	Addr   string // the address of the client, or of the proxy
	Action Action
	Target Target
	// Why is the reason that the user gave, and Detail has further details of the change.
	Why, Detail string
	// Count is the number of changed tasks, or 0 if they were not counted.
	Count int64
	Err   error
}

// allowed reports whether the user may do an action. It is the one place that decides.
func (in *request) allowed(a Action, t Target) bool {
	if in.h.options.Allow == nil {
		return a == View || a == ViewPayload
	}
	return in.h.options.Allow(in.r.Context(), in.user, a, t)
}

// Can reports whether to show the button of an action.
func (in *request) Can(a string, t Target) bool { return in.allowed(Action(a), t) }

// anonymous stands for a user without a name.
const anonymous = "dashboard"

// who is the name to store with a change.
func (in *request) who() string {
	return cmp.Or(in.user.Name, anonymous)
}

// note returns the author and the reason to store with a change.
func (in *request) note() falldue.Note {
	return falldue.Note{Who: in.who(), Why: in.r.PostFormValue("why")}
}

// post is a change. action is the permission that the user needs, and "" if do decides it. do makes the change.
type post struct {
	action Action
	do     func(*request) (done, error)
}

// done is a change that was made, and the page to show next.
type done struct {
	to     string // a relative URL
	entry  Entry
	logged bool // whether the change logs itself
}

// errForbidden refuses a change.
var errForbidden = errors.New("you do not have permission to do that")

// maxForm is the greatest size of a form, in bytes.
const maxForm = 64 << 10

// post checks a change, makes it and records it.
func (in *request) post(p post) {
	if err := in.h.cross.Check(in.r); err != nil {
		in.fail(http.StatusForbidden, "This change came from another site and was refused. If you use the page through a proxy, set TrustedOrigins to the address in your browser.")
		return
	}
	in.r.Body = http.MaxBytesReader(in.w, in.r.Body, maxForm)
	if err := in.r.ParseForm(); err != nil {
		in.fail(http.StatusBadRequest, "The form could not be read: "+err.Error())
		return
	}
	made, err := p.do(in)
	if p.action != "" {
		made.entry.Action = p.action
	}
	if !made.logged && !errors.Is(err, errForbidden) {
		made.entry.Err = err
		in.record(made.entry)
	}
	in.h.changedNow()
	if err != nil {
		in.failed(err)
		return
	}
	// A relative URL, which http.Redirect would make absolute without the prefix.
	in.w.Header().Set("Location", made.to)
	in.w.WriteHeader(http.StatusSeeOther)
}

// need returns errForbidden unless the user may do an action.
func (in *request) need(a Action, t Target) error {
	if !in.allowed(a, t) {
		return errForbidden
	}
	return nil
}

// record logs a change.
func (in *request) record(e Entry) {
	e.At, e.User, e.Addr = time.Now(), in.user, in.r.RemoteAddr
	in.h.record(context.WithoutCancel(in.r.Context()), e)
}

func (h *Handler) record(ctx context.Context, e Entry) {
	args := []any{"user", e.User.Name, "addr", e.Addr, "action", string(e.Action)}
	add := func(name string, value any, set bool) {
		if set {
			args = append(args, name, value)
		}
	}
	add("queue", e.Target.Queue, e.Target.Queue != "")
	add("kind", e.Target.Kind, e.Target.Kind != "")
	add("task", e.Target.ID, e.Target.ID != 0)
	add("target", e.Target.Name, e.Target.Name != "")
	add("bulk", true, e.Target.Bulk)
	add("detail", e.Detail, e.Detail != "")
	add("why", e.Why, e.Why != "")
	add("count", e.Count, e.Count != 0)
	add("error", e.Err, e.Err != nil)
	h.options.Logger.Info("falldue: dashboard action", args...)
	if h.options.Audit != nil {
		h.options.Audit(ctx, e)
	}
	h.keep(ctx, e)
}

// keep stores a change for the page of changes. It stores failed changes, too.
func (h *Handler) keep(ctx context.Context, e Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	d := ops.Deed{Note: falldue.Note{Who: cmp.Or(e.User.Name, anonymous), Why: e.Why}, Action: string(e.Action), Target: e.words(), Changed: e.Count}
	if e.Err != nil {
		d.Target += ", failed: " + e.Err.Error()
	}
	if err := h.ops.Record(ctx, d); err != nil {
		h.options.Logger.Warn("falldue: dashboard cannot store an action in table audit", "action", d.Action, "error", err)
	}
}

// words describe the target of a change.
func (e Entry) words() string {
	var list []string
	switch t := e.Target; {
	case t.ID != 0 && t.Kind != "":
		list = append(list, fmt.Sprintf("task %d of kind %s", t.ID, t.Kind))
	case t.ID != 0:
		list = append(list, fmt.Sprintf("task %d", t.ID))
	case t.Bulk:
		list = append(list, "all tasks with")
	case t.Name == "" && t.Kind != "":
		list = append(list, "kind "+t.Kind)
	}
	for _, text := range []string{e.Target.Name, e.Detail} {
		if text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}
