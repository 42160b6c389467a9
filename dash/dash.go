package dash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// Options are the settings of a [Handler]. The zero value shows everything to all visitors, and
// allows no change.
type Options struct {
	// User returns the sender of a request, whom the sign-in around the handler has identified. If User returns an error,
	// the request is refused with status 403 and the error's text. Defaults to a user without a name.
	User func(*http.Request) (User, error)
	// Allow reports whether a user may do an action. It is called for each page, and before each change. Buttons for
	// denied actions are not shown. Defaults to [View] and [ViewPayload].
	Allow func(context.Context, User, Action, Target) bool
	// Redact returns a copy of a payload or a result without the data that pages must not show, such as card numbers. It
	// gets the data as decoded by the queue's codec. Defaults to no change.
	Redact func(kind string, data json.RawMessage) json.RawMessage
	// Links returns links about a task to other systems, such as a trace or a customer's page. Every user who may
	// view the task sees them.
	Links func(falldue.TaskInfo) []Link
	// Audit is called after each change, whether it succeeded or not. The Logger logs the same facts.
	Audit func(context.Context, Entry)
	// Logger gets a line for each change, and the errors of reads. Defaults to [slog.Default].
	Logger *slog.Logger
	// Policies are the policies of kinds that neither the queue nor a live worker handles, by
	// kind, as for [ops.Ops.WithPolicies].
	Policies map[string]backoff.Policy
	// Title names the system in the heading. Badge is a word in a red box next to the title, such as "production".
	// They default to "falldue" and "".
	Title, Badge string
	// Refresh is the time between two refreshes of a page: 1 second to 1 hour. Defaults to 5
	// seconds.
	Refresh time.Duration
	// TrustedOrigins are origins, such as https://ops.example, from which changes are accepted in addition to the page's
	// own origin. Set the public origin if a proxy changes the Host header and people reach the proxy through plain HTTP.
	TrustedOrigins []string
	// FrameAncestors are the origins of pages that may embed the page in a frame. Defaults to none.
	FrameAncestors []string
}

// Link is a link to another system.
type Link struct{ Text, URL string }

// Handler shows a queue. It is safe for concurrent use.
type Handler struct {
	options Options
	queue   *falldue.Queue
	ops     *ops.Ops
	monitor *ops.Monitor
	cross   *http.CrossOriginProtection
	csp     string
	changed atomic.Int64 // when this handler last changed something; values read before are stale
	reads   reads
	jobs    jobs
}

// New returns a handler for a queue, which need not run a worker or handle kinds. New neither reads the database nor
// starts anything. The error names an option that is invalid.
func New(q *falldue.Queue, o Options) (*Handler, error) {
	if q == nil {
		return nil, errors.New("dash: the queue is nil")
	}
	if o.Refresh != 0 && (o.Refresh < time.Second || o.Refresh > time.Hour) {
		return nil, fmt.Errorf("dash: Refresh %v: must be between 1s and 1h", o.Refresh)
	}
	o.Refresh, o.Title = cmp.Or(o.Refresh, 5*time.Second), cmp.Or(o.Title, "falldue")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	operator, err := ops.New(q).WithPolicies(o.Policies)
	if err != nil {
		return nil, err
	}
	h := &Handler{options: o, queue: q, ops: operator, monitor: operator.NewMonitor(), cross: http.NewCrossOriginProtection()}
	for _, origin := range o.TrustedOrigins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("dash: TrustedOrigins: %w", err)
		}
	}
	ancestors := "'none'"
	for i, origin := range o.FrameAncestors {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(origin, " ;,'") {
			return nil, fmt.Errorf("dash: FrameAncestors: %q is not an origin such as https://ops.example", origin)
		}
		if i == 0 {
			ancestors = ""
		}
		ancestors += " " + origin
	}
	h.csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + strings.TrimSpace(ancestors)
	h.reads.init(h)
	h.jobs.init()
	return h, nil
}

// Close stops the running changes of many tasks after their current batch, and waits for them until ctx ends. From then
// on, the handler refuses new changes.
func (h *Handler) Close(ctx context.Context) error { return h.jobs.close(ctx) }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", h.csp)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	path := strings.TrimPrefix(r.URL.Path, "/")
	if name, ok := strings.CutPrefix(path, "assets/"); ok {
		serveAsset(w, r, name)
		return
	}
	in := &request{h: h, r: r, w: w, query: r.URL.Query()}
	var err error
	if h.options.User != nil {
		if in.user, err = h.options.User(r); err != nil {
			in.fail(http.StatusForbidden, err.Error())
			return
		}
	}
	if !in.allowed(View, Target{}) {
		in.fail(http.StatusForbidden, "You do not have permission to see this page. Ask the operator of this server for the permission \"view\".")
		return
	}
	post, isPost := posts[path]
	page, isPage := pages[path]
	switch {
	case isPost && r.Method == http.MethodPost:
		in.post(post)
	case isPage && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		in.get(page)
	case isPost || isPage:
		allowed := []string{}
		if isPage {
			allowed = append(allowed, http.MethodGet, http.MethodHead)
		}
		if isPost {
			allowed = append(allowed, http.MethodPost)
		}
		header.Set("Allow", strings.Join(allowed, ", "))
		in.fail(http.StatusMethodNotAllowed, "This address accepts only "+strings.Join(allowed, " and ")+".")
	default:
		in.fail(http.StatusNotFound, "There is no such page.")
	}
}

// request is a request under way.
type request struct {
	h     *Handler
	r     *http.Request
	w     http.ResponseWriter
	query url.Values
	user  User
}

// get renders a page, or the parts of it that a refresh asks for.
func (in *request) get(make func(*request) (page, error)) {
	p, err := make(in)
	if err != nil {
		in.failed(err)
		return
	}
	in.render(http.StatusOK, p)
}

// changedNow makes all values read before stale.
func (h *Handler) changedNow() { h.changed.Store(time.Now().UnixNano()) }

// pages maps paths to pages, and posts maps paths to changes.
var (
	pages map[string]func(*request) (page, error)
	posts map[string]post
)

func init() { // since the functions refer to the tables
	pages = map[string]func(*request) (page, error){
		"": overviewPage, "tasks": tasksPage, "task": taskPage, "failures": failuresPage, "workers": workersPage, "policies": policiesPage,
		"queues": queuesPage, "policy": policyPage, "schedules": schedulesPage, "doctor": doctorPage, "bulk": bulkPage, "job": jobPage, "changes": changesPage, "running": runningPage, "limits": limitsPage, "new": enqueuePage,
		"flow": flowPage, "forecast": forecastPage, "simulate": simulatePage,
	}
	posts = map[string]post{
		"retry": {Retry, retryTask}, "run": {Run, runTask}, "bulk-run": {Run, bulkPost(Run)}, "enqueue": {Enqueue, enqueueTask}, "cancel": {Cancel, cancelTask}, "delete": {Delete, deleteTask}, "edit": {Edit, editTask},
		"pause": {Pause, pauseSubject}, "resume": {Pause, resumeSubject}, "set-policy": {SetPolicy, setPolicy}, "clear-policy": {SetPolicy, clearPolicy},
		"schedule": {Schedule, changeSchedule}, "bulk-retry": {Retry, bulkPost(Retry)}, "bulk-cancel": {Cancel, bulkPost(Cancel)}, "bulk-delete": {Delete, bulkPost(Delete)},
		"stop": {"", stopJob},
	}
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
