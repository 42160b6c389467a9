package dash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// hostile is a text that breaks pages which do not escape it, with control characters and one that
// turns the direction of text.
const hostile = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)> \x1b[31m\u202e{{.}} javascript:alert(3)"

// site is a queue with tasks, and its pages.
type site struct {
	t     *testing.T
	db    *sqlx.DB
	queue *falldue.Queue
	h     *dash.Handler
	dead  int64 // the id of a dead task
	waits int64 // and of one that waits for a retry
}

var webhook = falldue.NewKind[json.RawMessage]("webhook", falldue.KindConfig{Policy: backoff.ParseDeferred("delay 1h; attempts 5")})

// newSite returns a site of a database with tables and without tasks.
func newSite(t *testing.T, engine string, o dash.Options) *site {
	t.Helper()
	db := testdb.Open(t, engine)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	falldue.Handle(q, webhook, func(context.Context, falldue.Task[json.RawMessage]) error { return nil })
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	h, err := dash.New(q, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &site{t: t, db: db, queue: q, h: h}
}

// fill stores tasks whose payloads, errors and keys are hostile.
func (s *site) fill() *site {
	s.t.Helper()
	ctx := s.t.Context()
	payload, err := json.Marshal(map[string]string{"note": hostile})
	if err != nil {
		s.t.Fatal(err)
	}
	receipts, err := webhook.EnqueueMany(ctx, s.queue, []json.RawMessage{payload, payload, payload}, falldue.EnqueueOptions{Key: "customer:42", Metadata: map[string]string{"trace": hostile}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.dead, s.waits = receipts[0].ID, receipts[1].ID
	s.db.MustExec(s.db.Rebind("update falldue_tasks set attempts = 2, state = 'dead', last_error = ? where id = ?"), hostile, s.dead)
	s.db.MustExec(s.db.Rebind("update falldue_tasks set attempts = 1, last_error = ? where id = ?"), hostile, s.waits)
	s.db.MustExec(s.db.Rebind("insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error, stack) select id, 1, 1, 'retried', 'w', created_at, 5000, last_error, last_error from falldue_tasks where id = ?"), s.dead)
	s.db.MustExec(s.db.Rebind("insert into falldue_steps (task_id, n, name, fence, crashes, started_at, updated_at, result) select id, 1, 'fetch', 1, 2, created_at, created_at, payload from falldue_tasks where id = ?"), s.dead)
	if err := s.queue.Pause(ctx, falldue.Subject{Kind: "other"}, falldue.PauseOptions{Note: falldue.Note{Who: hostile, Why: hostile}}); err != nil {
		s.t.Fatal(err)
	}
	override, err := backoff.ParseOverride("max(original, 2h)")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := ops.New(s.queue).SetPolicy(ctx, falldue.Subject{Kind: "webhook"}, override, ops.OverrideOptions{Note: falldue.Note{Who: hostile, Why: hostile}}); err != nil {
		s.t.Fatal(err)
	}
	sched, err := periodic.New(s.queue, periodic.Schedule{Name: "nightly", Spec: "@daily", Task: webhook.Params(payload)})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := sched.Tick(ctx); err != nil {
		s.t.Fatal(err)
	}
	if err := periodic.Pause(ctx, s.queue, "nightly", falldue.Note{Who: hostile, Why: hostile}); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// get returns the status and the text of a page.
func (s *site) get(path string) (int, string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+path, nil))
	return w.Code, w.Body.String()
}

// see returns the text of a page, and fails the test if it is not there.
func (s *site) see(path string, wants ...string) string {
	s.t.Helper()
	code, text := s.get(path)
	if code != http.StatusOK {
		s.t.Errorf("GET %s: status %d:\n%s", path, code, text)
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			s.t.Errorf("GET %s lacks %q:\n%s", path, want, text)
		}
	}
	return text
}

// post sends a form as the page itself does.
func (s *site) post(path string, form url.Values) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

// paths are all pages of a filled site.
func (s *site) paths() []string {
	return []string{
		"", "tasks", "tasks?kind=webhook&phase=backing_off", "tasks?match=note&order=oldest", fmt.Sprintf("task?id=%d", s.dead), fmt.Sprintf("task?id=%d", s.waits),
		"failures", "failures?kind=webhook", "queues", "workers", "policies", "policy?subject=kind:webhook&form=slow&factor=4&weigh=1",
		"policy?subject=kind:webhook&form=hold&weigh=1", "policy?subject=kind:webhook&form=ramp&weigh=1", "policy?kind=webhook&override=5m%3B+jitter+1m", "schedules", "doctor",
		"doctor?run=1", "bulk?do=retry&kind=webhook&state=dead", "bulk?do=cancel&kind=webhook", "bulk?do=run&kind=webhook", "changes", "running", "limits", "limits?owner=kind+webhook&limit=AtMost(2).PerKey()", "new?kind=webhook&queue=default", "bulk?do=delete&kind=webhook&match=note",
		"forecast", "forecast?read=1", "forecast?read=1&kind=webhook", "simulate?kind=webhook", "simulate?kind=webhook&policies=delay+10s%0A4s&outage=10m&do=1", "simulate?policies=&backlog=1&do=1&outage=1m", fmt.Sprintf("flow?id=%d", s.dead),
	}
}

// everything allows all.
func everything(context.Context, dash.User, dash.Action, dash.Target) bool { return true }

// TestPages: each page is there on each engine, for a database with tasks and without, and its
// links lead somewhere.
func TestPages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		empty := newSite(t, engine, dash.Options{Allow: everything})
		for _, path := range []string{"", "tasks", "failures", "queues", "workers", "policies", "schedules", "doctor", "changes", "running", "limits", "new", "forecast?read=1", "simulate"} {
			empty.see(path, "<h1", "</html>")
		}
		empty.see("", "No worker is running, and no task is waiting.")
		s := newSite(t, engine, dash.Options{Allow: everything}).fill()
		links := map[string]bool{}
		for _, path := range s.paths() {
			text := s.see(path, "<h1", "</html>")
			for _, link := range regexp.MustCompile(` href="([^"#:]+)"`).FindAllStringSubmatch(text, -1) {
				links[strings.ReplaceAll(link[1], "&amp;", "&")] = true
			}
		}
		for link := range links {
			s.see(strings.TrimPrefix(link, "./"))
		}
		s.see("", "No worker is running, and tasks are waiting", "Kind webhook has 1 dead task", "max(original, 2h)")
		s.see("tasks?kind=webhook", "customer:42", "backing off", "Cancel all matching tasks")
		s.see(fmt.Sprintf("task?id=%d", s.waits), "Why it does not run now", "Attempt 2", "no live worker", "Then the task is dead")
		s.see(fmt.Sprintf("task?id=%d", s.dead), "Attempt 1 failed", "Retry now", "Stack", "fetch", "Crashes", "Result or cursor")
		s.see("forecast?read=1", "the next six hours", "webhook", "<svg")
		s.see("simulate?kind=webhook&policies=delay+10s%0Adelay+2h&outage=10m&do=1", "delay 10s", "delay 2h", "Attempts per minute", "<svg")
		s.see("policy?subject=kind:webhook&form=slow&factor=4&weigh=1", "4 * 1h", "become due later", "<svg")
	})
}

// TestHostileTexts: no text of a task, of a note or of a request becomes markup, and no control
// character reaches the page.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything, Title: hostile, Badge: hostile,
		User:  func(*http.Request) (dash.User, error) { return dash.User{Name: hostile}, nil },
		Links: func(falldue.TaskInfo) []dash.Link { return []dash.Link{{Text: hostile, URL: "javascript:alert(4)"}} },
	}).fill()
	paths := s.paths()
	for _, name := range []string{"queue", "kind", "key", "state", "phase", "older", "match", "after", "order"} {
		paths = append(paths, "tasks?"+url.Values{name: {hostile}}.Encode(), "bulk?"+url.Values{"do": {"delete"}, name: {hostile}}.Encode())
	}
	for _, name := range []string{"subject", "override", "form", "factor", "over", "until", "why"} {
		paths = append(paths, "policy?"+url.Values{"subject": {"kind:webhook"}, "weigh": {"1"}, name: {hostile}}.Encode())
	}
	for name := range dash.SimulateFields() {
		paths = append(paths, "simulate?"+url.Values{"do": {"1"}, name: {hostile}}.Encode())
	}
	for _, name := range []string{"task?id=", "job?id=", "flow?id=", "forecast?read=1&kind=", "failures?kind=", "?done="} {
		paths = append(paths, name+url.QueryEscape(hostile))
	}
	for _, path := range paths {
		code, text := s.get(path)
		if code == http.StatusInternalServerError {
			t.Errorf("GET %s: status %d:\n%s", path, code, text)
		}
		for _, bad := range []string{"<script>", "<img", "\x1b", "\u202e", `href="javascript`, " style=", "onerror=alert(2)>", "onclick="} {
			if strings.Contains(text, bad) {
				t.Errorf("GET %s has %q", path, bad)
			}
		}
	}
}

// TestReadOnly: without Allow the pages show no form that changes anything, and each change is
// refused.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{}).fill()
	for _, path := range s.paths() {
		if strings.HasPrefix(path, "bulk") || strings.HasPrefix(path, "new") {
			if code, _ := s.get(path); code != http.StatusForbidden {
				t.Errorf("GET %s: status %d", path, code)
			}
			continue
		}
		if text := s.see(path); strings.Contains(text, `method="post"`) || strings.Contains(text, "formaction=\"set") {
			t.Errorf("GET %s has a form that changes something", path)
		}
	}
	for path, form := range s.changes() {
		if w := s.post(path, form); w.Code != http.StatusForbidden {
			t.Errorf("POST %s: status %d:\n%s", path, w.Code, w.Body)
		}
	}
	s.unchanged()
}

// changes are forms for each route that changes something.
func (s *site) changes() map[string]url.Values {
	id := func(id int64) url.Values { return url.Values{"id": {fmt.Sprint(id)}, "why": {"a test"}} }
	edit := id(s.dead)
	edit.Set("args", `{"a": 1}`)
	forms := map[string]url.Values{
		"retry": id(s.dead), "run": id(s.waits), "bulk-run": {"kind": {"webhook"}}, "enqueue": {"kind": {"webhook"}, "args": {`{"a": 1}`}, "why": {"a test"}}, "edit": edit, "cancel": id(s.waits), "delete": id(s.waits),
		"pause": {"subject": {"kind:webhook"}}, "resume": {"subject": {"kind:other"}},
		"set-policy": {"subject": {"kind:webhook"}, "override": {"3h"}, "why": {"a test"}, "sure": {"1"}}, "clear-policy": {"subject": {"kind:webhook"}, "sure": {"1"}},
		"schedule": {"name": {"nightly"}, "do": {"resume"}}, "bulk-retry": {"kind": {"webhook"}, "state": {"dead"}}, "bulk-cancel": {"kind": {"webhook"}},
		"bulk-delete": {"kind": {"webhook"}, "expected": {"3"}, "typed": {"3"}}, "stop": {"job": {"1"}},
	}
	for _, form := range forms {
		form.Set("why", "a test")
	}
	return forms
}

// unchanged fails the test if a change was made.
func (s *site) unchanged() {
	s.t.Helper()
	ctx := s.t.Context()
	for id, state := range map[int64]falldue.State{s.dead: falldue.StateDead, s.waits: falldue.StateOpen} {
		if task, err := s.queue.Task(ctx, id); err != nil || task.State != state {
			s.t.Errorf("task %d is %v, error %v", id, task.State, err)
		}
	}
	o := ops.New(s.queue)
	if list, err := o.Pauses(ctx); err != nil || len(list) != 1 || list[0].Kind != "other" {
		s.t.Errorf("the pauses are %+v, error %v", list, err)
	}
	if list, err := o.Overrides(ctx); err != nil || len(list) != 1 || list[0].Formula.String() != "max(original, 2h)" {
		s.t.Errorf("the overrides are %+v, error %v", list, err)
	}
	if list, err := periodic.List(ctx, s.queue); err != nil || len(list) != 1 || !list[0].Paused {
		s.t.Errorf("the schedules are %+v, error %v", list, err)
	}
}

// TestEachRouteAsEachUser: each route that changes something works for a user with its permission,
// and for nobody who has all others. Names of permissions are what the routes need.
func TestEachRouteAsEachUser(t *testing.T) {
	t.Parallel()
	needs := map[string]dash.Action{
		"retry": dash.Retry, "run": dash.Run, "bulk-run": dash.Run, "enqueue": dash.Enqueue, "edit": dash.Edit, "cancel": dash.Cancel, "delete": dash.Delete, "pause": dash.Pause, "resume": dash.Pause, "set-policy": dash.SetPolicy,
		"clear-policy": dash.SetPolicy, "schedule": dash.Schedule, "bulk-retry": dash.Retry, "bulk-cancel": dash.Cancel, "bulk-delete": dash.Delete, "stop": dash.Retry,
	}
	routes := dash.Routes()
	for path := range needs {
		if !slices.Contains(routes, path) {
			t.Errorf("there is no route %s", path)
		}
	}
	for _, path := range routes {
		action, known := needs[path]
		if !known {
			t.Errorf("route %s needs a permission; list it in this test", path)
			continue
		}
		for _, has := range []bool{true, false} {
			var denied dash.Action
			s := newSite(t, testdb.SQLite, dash.Options{Allow: func(_ context.Context, _ dash.User, a dash.Action, _ dash.Target) bool { return a != denied },
				User: func(*http.Request) (dash.User, error) { return dash.User{Name: "ada"}, nil }}).fill()
			if path == "stop" {
				s.post("bulk-retry", s.changes()["bulk-retry"])
			}
			if !has {
				denied = action
			}
			switch w := s.post(path, s.changes()[path]); {
			case has && w.Code != http.StatusSeeOther, !has && w.Code != http.StatusForbidden:
				t.Errorf("POST %s, allowed %v: status %d:\n%s", path, has, w.Code, w.Body)
			case has:
				to, _, _ := strings.Cut(w.Header().Get("Location"), "#")
				s.see(to)
				if s.recorded(action); path == "stop" && !slices.ContainsFunc(s.deeds(), func(d ops.Deed) bool { return strings.Contains(d.Target, "stop change") && d.Why == "a test" }) {
					t.Errorf("the stop is not among %+v", s.deeds())
				}
			case path != "stop":
				s.unchanged()
			}
		}
	}
}

// recorded fails the test unless an action is on the page of changes. An action on many tasks is there when it ends.
func (s *site) recorded(a dash.Action) {
	s.t.Helper()
	if err := s.h.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	list, err := ops.New(s.queue).Audit(s.t.Context(), 10)
	if err != nil || len(list) == 0 || list[0].Action != string(a) || list[0].Who != "ada" || list[0].Why != "a test" || list[0].Target == "" || time.Since(list[0].At).Abs() > time.Hour {
		s.t.Errorf("after %s the last deeds are %+v, error %v", a, list, err)
		return
	}
	s.see("changes", list[0].Action, list[0].Target)
}

// deeds are the last actions.
func (s *site) deeds() []ops.Deed {
	s.t.Helper()
	list, err := ops.New(s.queue).Audit(s.t.Context(), 10)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// TestHistoryIsDrawn: of the last hour, by outcome, with what was measured; and nothing without a history.
func TestHistoryIsDrawn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := newSite(t, engine, dash.Options{}).fill()
		if text := s.see(""); strings.Contains(text, "The last hour") {
			t.Errorf("without a history the first page has a chart:\n%s", text)
		}
		table := hooks.Of[interface{ Store() *store.Store }](s.queue).Store()
		for back, done := range map[time.Duration]int64{2 * time.Minute: 1234, 30 * time.Minute: 99, 5 * time.Hour: 777} {
			sums := store.Sums{Queue: falldue.DefaultQueue, Kind: "webhook", Started: done + 5, Done: done, Failed: 3, Dead: 2, Waiting: store.NotNull[int64](4321), OldestDue: store.NotNull((7 * time.Minute).Microseconds())}
			if err := table.AddMinutes(t.Context(), []store.Sums{sums}, back); err != nil {
				t.Fatal(err)
			}
		}
		dash.Expire(s.h)
		text := s.see("", "The last hour", "Runs per minute, by outcome", "How long the oldest due task has waited", ">1,234<", ">99<", ">7m<", "~4,321")
		if strings.Contains(text, ">777<") {
			t.Error("the last hour has what was five hours ago")
		}
		s.see("queues", "<svg class=\"spark\"")
	})
}

// TestFlowIsDrawn: tasks that are alike have one box, each task has a row, and a task leads to its flow.
func TestFlowIsDrawn(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{})
	payload := json.RawMessage(`{}`)
	pages := slices.Repeat([]falldue.EnqueueParams{webhook.Params(payload)}, 40)
	publish := falldue.NewKind[json.RawMessage]("publish", falldue.KindConfig{})
	ids, err := flow.Batch(pages...).Then(publish.Params(payload)).Enqueue(t.Context(), s.queue)
	if err != nil {
		t.Fatal(err)
	}
	s.db.MustExec(s.db.Rebind("update falldue_tasks set state = 'dead' where id = ?"), ids[3])
	s.see(fmt.Sprintf("task?id=%d", ids[40]), fmt.Sprintf(`href="flow?id=%d"`, ids[40]))
	text := s.see(fmt.Sprintf("flow?id=%d", ids[40]), "webhook × 40", "1 dead, 39 waiting or running", "publish", "<svg width=")
	if boxes := strings.Count(text, "chart-fpaper"); boxes != 2 || strings.Count(text, "<tr") != 42 {
		t.Errorf("the flow has %d boxes and %d rows:\n%s", boxes, strings.Count(text, "<tr"), text)
	}
}

// TestSimulationIsBounded: a form that would keep the processor busy is refused.
func TestSimulationIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{}).fill()
	for says, query := range map[string]url.Values{
		"tasks are enqueued during the outage": {"policies": {"10s"}, "outage": {"30d"}, "rate": {"1000"}, "handlers": {"1000"}},
		"up to 4 policies":                     {"policies": {"1s\n2s\n3s\n4s\n5s"}},
		"Enter at least one policy":            {"policies": {" "}},
		"is not a number":                      {"policies": {"1s"}, "rate": {"many"}},
		"need more than 3 workers":             {"policies": {"1s"}, "handlers": {"1"}},
	} {
		query.Set("do", "1")
		s.see("simulate?"+query.Encode(), says)
	}
}

// TestOtherSitesChangeNothing: a browser that another site leads to a route is refused, and so is
// one whose origin is another one.
func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	for path, form := range s.changes() {
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			r := httptest.NewRequest(http.MethodPost, "/"+path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(name, value)
			w := httptest.NewRecorder()
			if s.h.ServeHTTP(w, r); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another site") {
				t.Errorf("POST %s with %s %s: status %d", path, name, value, w.Code)
			}
		}
		if code, _ := s.get(path); code != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: status %d", path, code)
		}
	}
	s.unchanged()
}

// TestMounts: the same pages are at the root of a server and below a path, and a change leads back
// to its page.
func TestMounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", s.h))
	for prefix, h := range map[string]http.Handler{"": s.h, "/ops/falldue": mux} {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		get := func(address string) string {
			t.Helper()
			answer, err := server.Client().Get(address)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("GET %s: status %s, error %v", address, answer.Status, err)
			}
			return string(text)
		}
		page := get(server.URL + prefix + "/")
		base, err := url.Parse(server.URL + prefix + "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if found[1] == "#main" || strings.HasPrefix(found[1], "data:") {
				continue
			}
			to, err := base.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
			if err != nil || strings.HasPrefix(found[1], "/") {
				t.Errorf("the page links to %q, error %v", found[1], err)
				continue
			}
			get(to.String())
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+prefix+"/retry", strings.NewReader(url.Values{"id": {fmt.Sprint(s.dead)}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != prefix+"/task" {
			t.Errorf("a retry below %q leads to %s: %s", prefix, answer.Request.URL, answer.Status)
		}
		s.db.MustExec(s.db.Rebind("update falldue_tasks set state = 'dead' where id = ?"), s.dead)
	}
}

// TestViewersShareReads: what the first page costs the database does not depend on how many look.
func TestViewersShareReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{}).fill()
	trace := 0
	var mu sync.Mutex
	h, err := dash.New(s.queue, dash.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	dash.OnRead(h, func() { mu.Lock(); trace++; mu.Unlock() })
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		})
	}
	all.Wait()
	if trace > 5 {
		t.Errorf("100 viewers cost %d reads; one costs 5", trace)
	}
}

// TestPayloadsAreHidden: who may not see payloads sees neither them nor results, metadata, errors
// and stacks, anywhere, and cannot search in them.
func TestPayloadsAreHidden(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: func(_ context.Context, _ dash.User, a dash.Action, _ dash.Target) bool { return a != dash.ViewPayload }}).fill()
	s.db.MustExec("update falldue_tasks set payload = '{\"note\": \"secret\"}', last_error = 'secret', metadata = '{\"secret\": \"secret\"}', result = '{\"r\": \"secret\"}'")
	s.db.MustExec("update falldue_attempts set error = 'secret', stack = 'secret'")
	s.db.MustExec("update falldue_steps set result = '\"secret\"'")
	for _, path := range s.paths() {
		code, text := s.get(path)
		if strings.Contains(path, "match") {
			if code == http.StatusOK {
				t.Errorf("GET %s searches in payloads", path)
			}
			continue
		}
		if code != http.StatusOK || strings.Contains(text, "secret") {
			t.Errorf("GET %s, status %d, shows a payload:\n%s", path, code, text)
		}
	}
	redacting := newSite(t, testdb.SQLite, dash.Options{Allow: everything, Redact: func(string, json.RawMessage) json.RawMessage { return json.RawMessage(`"redacted"`) }}).fill()
	text := redacting.see(fmt.Sprintf("task?id=%d", redacting.dead), "redacted")
	if strings.Contains(text, "Edit and retry") || strings.Contains(text, "alert(1)&lt;/script&gt;&#34;,") {
		t.Error("a redacted payload can be edited, which would store what is shown")
	}
}

// TestBulk: a change of many tasks is shown before, asks for the number, runs, and is recorded.
func TestBulk(t *testing.T) {
	t.Parallel()
	entries := make(chan dash.Entry, 10)
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything, Audit: func(_ context.Context, e dash.Entry) { entries <- e },
		User: func(*http.Request) (dash.User, error) { return dash.User{Name: "ada"}, nil }}).fill()
	s.see("bulk?do=delete&kind=webhook", "delete 3 tasks", "Type 3 to continue")
	if w := s.post("bulk-delete", url.Values{"kind": {"webhook"}, "expected": {"3"}, "typed": {"2"}}); w.Code != http.StatusBadRequest {
		t.Errorf("a wrong number: status %d", w.Code)
	}
	if e := <-entries; e.Err == nil {
		t.Errorf("the refused change is recorded as %+v", e)
	}
	s.unchanged()
	w := s.post("bulk-retry", url.Values{"kind": {"webhook"}, "state": {"dead"}, "rate": {"1"}, "why": {"fixed"}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d:\n%s", w.Code, w.Body)
	}
	if e := <-entries; e.User.Name != "ada" || e.Action != dash.Retry || e.Count != 1 || e.Why != "fixed" || !e.Target.Bulk || e.Target.Kind != "webhook" || e.Err != nil {
		t.Errorf("the change is recorded as %+v", e)
	}
	s.see(w.Header().Get("Location"), "Complete.")
	if task, err := s.queue.Task(t.Context(), s.dead); err != nil || finished(task.State) {
		t.Errorf("the task is %v, error %v", task.State, err)
	}
	if err := s.h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := s.post("bulk-cancel", url.Values{"kind": {"webhook"}}); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("a closed handler: status %d", w.Code)
	}
}

func finished(s falldue.State) bool { return s == falldue.StateDead || s == falldue.StateDone }

// TestPolicyIsSet: the editor sets an override with who, why and until, and refuses one without a
// reason.
func TestPolicyIsSet(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything, User: func(*http.Request) (dash.User, error) { return dash.User{Name: "ada"}, nil }}).fill()
	form := url.Values{"subject": {"kind:webhook"}, "form": {"slow"}, "factor": {"4"}, "until": {"2h"}, "sure": {"1"}}
	if w := s.post("set-policy", form); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Enter a reason") {
		t.Errorf("without a reason: status %d", w.Code)
	}
	form.Set("why", "the partner is down")
	if w := s.post("set-policy", form); w.Code != http.StatusSeeOther {
		t.Fatalf("status %d:\n%s", w.Code, w.Body)
	}
	list, err := ops.New(s.queue).Overrides(t.Context())
	if err != nil || len(list) != 1 || list[0].Formula.String() != "4 * original" || list[0].Who != "ada" || list[0].Why != "the partner is down" || list[0].Until.Sub(list[0].At).Round(time.Minute) != 2*time.Hour {
		t.Errorf("the overrides are %+v, error %v", list, err)
	}
	s.see("policy?subject=kind:webhook&done=set", "4 * original", "the partner is down", "The policy is set")
	s.see("policy?subject=kind:webhook&override=5m+%2B", "<strong>")
}

// TestTroubleIsShown: a database without tables, and one that is gone, give pages that say so.
func TestTroubleIsShown(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := dash.New(q, dash.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, db: db, queue: q, h: h}
	for _, path := range []string{"", "tasks", "failures", "queues", "workers", "policies", "schedules"} {
		s.see(path, "falldue migrate up")
	}
	full := newSite(t, testdb.SQLite, dash.Options{}).fill()
	full.see("", "tasks are waiting")
	if err := full.db.Close(); err != nil {
		t.Fatal(err)
	}
	dash.Expire(full.h)
	text := full.see("", "tasks are waiting") // the last values
	if !strings.Contains(text, "note bad") {
		t.Errorf("the page does not say that the database is gone:\n%s", text)
	}
}

// TestRefreshSendsParts: a refresh has the parts that may have changed, and no form that somebody
// may be filling in.
func TestRefreshSendsParts(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	r := httptest.NewRequest(http.MethodGet, "/tasks", nil)
	r.Header.Set("Falldue-Part", "1")
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	if text := w.Body.String(); !strings.HasPrefix(text, `<section id="tasks"`) || strings.Contains(text, "<form") || strings.Contains(text, "<html") {
		t.Errorf("a refresh has\n%s", text)
	}
}

// TestBudgets prints the sizes of what browsers load, and holds them to the limits.
func TestBudgets(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{}).fill()
	page := s.see("")
	for name, most := range map[string]int{`href="(assets/[^"]+)"`: 24_000, `src="(assets/[^"]+)"`: 12_000} {
		path := regexp.MustCompile(name).FindStringSubmatch(page)[1]
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+path, nil))
		if n := w.Body.Len(); w.Code != http.StatusOK || n == 0 || n > most || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %d bytes; allowed are %d", path, w.Code, n, most)
		}
		t.Logf("%s: %d bytes", path, w.Body.Len())
	}
	if len(page) > 40_000 {
		t.Errorf("the first page has %d bytes; allowed are 40,000", len(page))
	}
	t.Logf("the first page: %d bytes", len(page))
}

// TestUsersAreRefused: the error of User is what the page says.
func TestUsersAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything, User: func(*http.Request) (dash.User, error) { return dash.User{}, errors.New("sign in first") }}).fill()
	for _, path := range append(s.paths(), "nothing") {
		if code, text := s.get(path); code != http.StatusForbidden || !strings.Contains(text, "sign in first") {
			t.Errorf("GET %s: status %d", path, code)
		}
	}
	for path, form := range s.changes() {
		if w := s.post(path, form); w.Code != http.StatusForbidden {
			t.Errorf("POST %s: status %d", path, w.Code)
		}
	}
	s.unchanged()
}

// TestOptionsAreChecked: an invalid option is an error that names it.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{})
	for want, o := range map[string]dash.Options{
		"Refresh": {Refresh: time.Millisecond}, "TrustedOrigins": {TrustedOrigins: []string{"nonsense"}}, "FrameAncestors": {FrameAncestors: []string{"*; script-src *"}},
		"policy": {Policies: map[string]backoff.Policy{"k": backoff.ParseDeferred("nonsense(")}},
	} {
		if _, err := dash.New(s.queue, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	if _, err := dash.New(nil, dash.Options{}); err == nil {
		t.Error("a nil queue is allowed")
	}
}

// TestWaitingTasksAreEdited: the arguments of a waiting task are replaced, its time stays, and the audit says who did so.
// Who has seen a former state changes nothing.
func TestWaitingTasksAreEdited(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	s.db.MustExec(s.db.Rebind(`update falldue_tasks set attempts = 0, payload = '{"edit": "me"}' where id = ?`), s.waits)
	before, err := s.queue.Task(t.Context(), s.waits)
	if err != nil {
		t.Fatal(err)
	}
	if text := s.see(fmt.Sprintf("task?id=%d", s.waits)); !strings.Contains(text, "Store these arguments") {
		t.Errorf("the page has no form to edit the task:\n%s", text)
	}
	for i, status := range []int{http.StatusSeeOther, http.StatusConflict} {
		form := url.Values{"id": {fmt.Sprint(s.waits)}, "fence": {fmt.Sprint(before.Fence)}, "args": {fmt.Sprintf(`{"edit": %d}`, i)}, "why": {"a test"}}
		if w := s.post("edit", form); w.Code != status {
			t.Errorf("edit %d: status %d, want %d:\n%s", i, w.Code, status, w.Body)
		}
	}
	after, err := s.queue.Task(t.Context(), s.waits)
	if err != nil || string(after.Payload) != `{"edit": 0}` && string(after.Payload) != `{"edit":0}` || !after.UpdatedAt.Equal(before.UpdatedAt) {
		t.Errorf("the task is %+v, error %v", after, err)
	}
	deeds, err := ops.New(s.queue).Audit(t.Context(), 1)
	if err != nil || len(deeds) != 1 || deeds[0].Action != "edit" || deeds[0].Why != "a test" {
		t.Errorf("the audit has %+v, error %v", deeds, err)
	}
}

// TestATaskThatHasRunSinceStaysDone: who has seen a task before its first run neither edits nor retries the task after
// that run, which would run a done task again. Who has seen a cancelled task does not delete the task after its retry.
func TestATaskThatHasRunSinceStaysDone(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything})
	for _, route := range []string{"edit", "retry"} {
		receipt, err := webhook.Enqueue(t.Context(), s.queue, json.RawMessage("{}"))
		if err != nil {
			t.Fatal(err)
		}
		seen := url.Values{"id": {fmt.Sprint(receipt.ID)}, "fence": {"0"}, "args": {`{"edit": 1}`}}
		s.see("task?id="+seen.Get("id"), `name="fence" value="0"`)
		s.db.MustExec(s.db.Rebind("update falldue_tasks set state = 'done', attempts = 1, fence = 1 where id = ?"), receipt.ID)
		if w := s.post(route, seen); w.Code != http.StatusConflict {
			t.Errorf("%s: status %d, want %d:\n%s", route, w.Code, http.StatusConflict, w.Body)
		}
		if task, err := s.queue.Task(t.Context(), receipt.ID); err != nil || task.State != falldue.StateDone || string(task.Payload) != "{}" {
			t.Errorf("%s: the task is %+v, error %v", route, task, err)
		}
		// A flow cancels a task without a change of its fence.
		s.db.MustExec(s.db.Rebind("update falldue_tasks set state = 'cancelled', attempts = 0, fence = 0 where id = ?"), receipt.ID)
		if seen.Set("state", "open"); route == "edit" {
			if w := s.post(route, seen); w.Code != http.StatusConflict {
				t.Errorf("%s of a cancelled task: status %d, want %d:\n%s", route, w.Code, http.StatusConflict, w.Body)
			}
		}
		if seen.Set("state", "cancelled"); s.post(route, seen).Code != http.StatusSeeOther {
			t.Errorf("%s: a task that has not changed is not retried", route)
		}
		if w := s.post("delete", url.Values{"id": seen["id"], "state": {"cancelled"}}); w.Code != http.StatusConflict {
			t.Errorf("delete of a task that was retried: status %d, want %d:\n%s", w.Code, http.StatusConflict, w.Body)
		}
	}
}

// TestTaskShowsItsOptions: the page of a task has the options that were set for the task, and when its wait ends.
func TestTaskShowsItsOptions(t *testing.T) {
	t.Parallel()
	s := newSite(t, "sqlite", dash.Options{})
	policy := backoff.ParseDeferred("delay 1h").WithStartWithin(time.Hour)
	receipt, err := webhook.Enqueue(t.Context(), s.queue, json.RawMessage("{}"), falldue.EnqueueOptions{Timeout: 90 * time.Second, MaxAttempts: 7, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	s.see(fmt.Sprint("task?id=", receipt.ID), "1m30s for each run, set for this task", "0 of 7", "limit set for this task", "Expires", "Set for this task.")
}

// TestCausesHaveAStart: a cause says when it began, and not since so long ago.
func TestCausesHaveAStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{}).fill()
	text := s.see("")
	if !strings.Contains(text, `<span class="since">Began `) || strings.Contains(text, ">Since ") {
		t.Errorf("the first page is\n%s", text)
	}
}
