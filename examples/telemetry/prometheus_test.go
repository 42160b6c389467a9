package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/otelfalldue"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/signals"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// sampler has samples that are as new as possible. A reading that fails is repeated after 20 times as long as it took.
var sampler = signals.SamplerConfig{Every: time.Second}

// exporters make a queue whose metrics are in a registry, by the dashboard for them.
var exporters = map[string]func(*testing.T, *prometheus.Registry, *sqlx.DB, falldue.Hooks) *falldue.Queue{
	"falldue.json": func(t *testing.T, reg *prometheus.Registry, db *sqlx.DB, hooks falldue.Hooks) *falldue.Queue {
		m, err := promfalldue.New(reg, promfalldue.Config{Sampler: sampler})
		if err != nil {
			t.Fatal(err)
		}
		q := queueOn(t, db, m.Hooks(), hooks)
		m.Observe(q)
		return q
	},
	"falldue-otel.json": func(t *testing.T, reg *prometheus.Registry, db *sqlx.DB, hooks falldue.Hooks) *falldue.Queue {
		reader, err := exporter.New(exporter.WithRegisterer(reg))
		if err != nil {
			t.Fatal(err)
		}
		s, err := otelfalldue.New(otelfalldue.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), Sampler: sampler})
		if err != nil {
			t.Fatal(err)
		}
		q := queueOn(t, db, s.Hooks(), hooks)
		if err := s.Observe(q); err != nil {
			t.Fatal(err)
		}
		return q
	},
}

func queueOn(t *testing.T, db *sqlx.DB, list ...falldue.Hooks) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{Hooks: signals.JoinHooks(list...)})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestPrometheusScrapesWorkers: on each engine a real Prometheus scrapes three workers, and answers each expression
// of the dashboard, and of the rules if the metrics have the names of promfalldue.
func TestPrometheusScrapesWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short starts no servers; make alerts runs this test")
	}
	program := prometheusProgram(t)
	testdb.Each(t, func(t *testing.T, engine string) {
		for dashboard, export := range exporters {
			t.Run(dashboard, func(t *testing.T) {
				t.Parallel()
				scrape(t, engine, program, dashboard, export)
			})
		}
	})
}

func scrape(t *testing.T, engine, program, dashboard string, export func(*testing.T, *prometheus.Registry, *sqlx.DB, falldue.Hooks) *falldue.Queue) {
	first, db := signalstest.Queue(t, engine, falldue.Config{})
	prepare(t, first)
	rare := &rarities{db: db, ended: make(chan falldue.Outcome, 100), stuck: make(chan struct{}, 1), release: make(chan struct{}), begun: make(chan struct{}, 2), proceed: make(chan struct{}, 2)}
	p := &scraped{}
	var workers []*falldue.Queue
	for range 3 {
		reg := prometheus.NewRegistry()
		q := export(t, reg, db, rare.hooks())
		rare.handle(q)
		workers = append(workers, q)
		work(t, q)
		p.add(t, promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	}
	t.Cleanup(func() { close(rare.release) }) // before the workers stop
	p.start(t, program)
	p.wait(t)
	// Counters begin with 0. On a busy machine a scrape can take too long, and Prometheus has none of its values.
	p.until(t, `count(up == 1) == 3`, func() {})
	rare.cause(t, workers[0])
	rare.runAll(t, workers[0])
	names := strings.NewReplacer()
	if dashboard != "falldue.json" {
		names = strings.NewReplacer("outcome=", "messaging_falldue_outcome=", "queue=", "messaging_destination_name=", "kind=", "messaging_falldue_kind=",
			"role=", "messaging_falldue_role=", "falldue_statement_seconds", "messaging_client_operation_duration_seconds")
	}
	for _, expr := range []string{
		`sum(falldue_runs_total{outcome="done",kind="pay"}) == 1`, `sum(falldue_runs_total{outcome="dead"}) == 1`, `sum(falldue_runs_total{outcome="retried"}) == 1`,
		`max(falldue_workers{queue="default"}) == 3`,
		`max(falldue_sample_age_seconds) < 60`,
		`sum(increase(falldue_claims_lost_total[5m])) > 0`,
		`sum(increase(falldue_overtime_total{kind="stuck"}[5m])) > 0`,
		`sum(falldue_troubles_total{role="progress"}) > 0`,
		`sum(falldue_statement_seconds_count{error_type!=""}) > 0`,
	} {
		p.until(t, names.Replace(expr), func() {})
	}
	// A worker measures the wait for a limit if it had held the task back itself: with three workers, not every run is measured.
	limitWait := names.Replace(`sum(falldue_limit_wait_seconds_sum{kind="limited"}) > 0`)
	for _, expr := range append(dashboardExpressions(t, dashboard), limitWait) {
		p.until(t, expr, func() { rare.runAll(t, workers[0]) })
	}
	if dashboard == "falldue.json" {
		for _, expr := range ruleExpressions(t) {
			p.ask(t, expr)
			for _, series := range selector.FindAllString(expr, -1) {
				p.until(t, series, func() {})
			}
		}
	}
}

// selector matches what an expression selects. An alert has an answer only while it fires: promtool tests when.
var selector = regexp.MustCompile(`falldue[a-z0-9:]*_[a-z0-9:_]+(\{[^}]*\})?`)

var (
	limitedKind = falldue.NewKind[string]("limited", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1)}})
	stuckKind   = falldue.NewKind[string]("stuck", falldue.KindConfig{Timeout: time.Second})
)

// rarities cause events that a healthy service has rarely, or never.
type rarities struct {
	db      *sqlx.DB
	ended   chan falldue.Outcome
	stuck   chan struct{} // signaled when a handler is stuck
	release chan struct{} // closed when the stuck handler returns
	begun   chan struct{} // signaled when a limited handler has begun
	proceed chan struct{} // signaled when a limited handler returns
}

func (r *rarities) hooks() falldue.Hooks {
	return falldue.Hooks{
		Event: func(e falldue.Event) {
			if e.Outcome != falldue.OutcomeNone && e.Kind != stuckKind.Name() {
				r.ended <- e.Outcome
			}
		},
		Overtime: func(falldue.Event) {
			select {
			case r.stuck <- struct{}{}:
			default:
			}
		},
	}
}

func (r *rarities) handle(q *falldue.Queue) {
	falldue.Handle(q, signalstest.Kind, func(ctx context.Context, task falldue.Task[string]) error {
		switch task.Args {
		case "done":
			return nil
		case "lost": // as if another worker had claimed it
			_, err := r.db.ExecContext(ctx, r.db.Rebind("update falldue_tasks set fence = fence + 1 where id = ?"), task.ID)
			return err
		}
		return &signalstest.BankError{}
	})
	falldue.Handle(q, limitedKind, func(context.Context, falldue.Task[string]) error {
		r.begun <- struct{}{}
		select {
		case <-r.proceed:
		case <-r.release:
		}
		return nil
	})
	falldue.Handle(q, stuckKind, func(_ context.Context, task falldue.Task[string]) error {
		task.Progress(0.5, "half") // the worker cannot write that
		<-r.release
		return nil
	})
}

// cause makes a handler that does not return, a background loop that fails, and an enqueue that fails.
func (r *rarities) cause(t *testing.T, q *falldue.Queue) {
	t.Helper()
	if _, err := r.db.ExecContext(t.Context(), "alter table falldue_progress rename to falldue_away"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the stuck handler returns
		if _, err := r.db.ExecContext(context.WithoutCancel(t.Context()), "alter table falldue_away rename to falldue_progress"); err != nil {
			t.Error(err)
		}
	})
	if _, err := stuckKind.Enqueue(t.Context(), q, ""); err != nil {
		t.Fatal(err)
	}
	r.await(t, r.stuck, "no handler is stuck")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := signalstest.Kind.Enqueue(cancelled, q, "done"); err == nil {
		t.Fatal("an enqueue without time does not fail")
	}
}

// runAll runs tasks of several outcomes, and one that waits for a limit.
func (r *rarities) runAll(t *testing.T, q *falldue.Queue) {
	t.Helper()
	for _, args := range []string{"done", "retried", "dead", "lost"} {
		signalstest.Enqueue(t.Context(), t, q, args)
	}
	if _, err := limitedKind.EnqueueMany(t.Context(), q, []string{"first", "second"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.await(t, r.begun, "no limited task has begun")
		r.proceed <- struct{}{}
	}
	for range 6 {
		select {
		case <-r.ended:
		case <-time.After(testdb.Patience):
			t.Fatal("the tasks have not run")
		}
	}
}

func (r *rarities) await(t *testing.T, signal chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(testdb.Patience):
		t.Fatal(otherwise)
	}
}

// prepare makes a pause, an override and a schedule.
func prepare(t *testing.T, q *falldue.Queue) {
	t.Helper()
	elsewhere := falldue.Subject{Kind: "elsewhere"}
	if err := q.Pause(t.Context(), elsewhere, falldue.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ops.New(q).SetPolicy(t.Context(), elsewhere, ops.Hold(), ops.OverrideOptions{}); err != nil {
		t.Fatal(err)
	}
	scheduler, err := periodic.New(q, periodic.Schedule{Name: "yearly", Spec: "@every 8760h", Task: signalstest.Kind.Params("done")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// work runs a queue until the test ends.
func work(t *testing.T, q *falldue.Queue) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// scraped are targets that a Prometheus scrapes.
type scraped struct {
	targets []string
	scrapes []*atomic.Int64 // how many began, by target
	began   []chan struct{} // signaled by each
	address string
}

// add adds a target.
func (p *scraped) add(t *testing.T, h http.Handler) {
	t.Helper()
	scrapes, began := new(atomic.Int64), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scrapes.Add(1)
		select {
		case began <- struct{}{}:
		default:
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.targets, p.scrapes, p.began = append(p.targets, strings.TrimPrefix(server.URL, "http://")), append(p.scrapes, scrapes), append(p.began, began)
}

// wait returns when Prometheus has what each target exports now: a scrape that began now has ended when the next
// one begins. A second scrape gives functions such as rate the two values that they need.
func (p *scraped) wait(t *testing.T) {
	t.Helper()
	for i, scrapes := range p.scrapes {
		for until := scrapes.Load() + 4; scrapes.Load() < until; {
			select {
			case <-p.began[i]:
			case <-time.After(testdb.Patience):
				t.Fatalf("Prometheus does not scrape http://%s", p.targets[i])
			}
		}
	}
}

// until returns when an expression has an answer that is a number. Otherwise it calls next, and asks again after the next
// scrape: a rate needs a series that grows.
func (p *scraped) until(t *testing.T, expr string, next func()) {
	t.Helper()
	number := func(r json.RawMessage) bool { return !strings.Contains(string(r), `"NaN"`) }
	for deadline := time.Now().Add(testdb.Patience); !slices.ContainsFunc(p.ask(t, expr), number); p.wait(t) {
		next()
		if time.Now().After(deadline) {
			t.Fatalf("no series answers %s", expr)
		}
	}
}

// start starts a Prometheus.
func (p *scraped) start(t *testing.T, program string) {
	t.Helper()
	rules, err := filepath.Abs("../../grafana/falldue.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: falldue\n    static_configs: [{targets: [%s]}]\n",
		rules, `"`+strings.Join(p.targets, `", "`)+`"`)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-read
		_ = command.Wait()
	})
	listening := regexp.MustCompile(`address=(127\.0\.0\.1:[1-9]\d*)`)
	lines := bufio.NewScanner(stderr)
	var log strings.Builder
	for p.address == "" && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			p.address = found[1]
		}
	}
	go func() {
		defer close(read)
		for lines.Scan() { // so that it can log
		}
	}()
	if p.address == "" {
		t.Fatalf("Prometheus does not listen:\n%s", &log)
	}
}

// ask returns the answer to an expression.
func (p *scraped) ask(t *testing.T, expr string) []json.RawMessage {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Status != "success" {
		t.Errorf("%s: status %s, %s, error %v", expr, body.Status, body.Error, err)
	}
	return body.Data.Result
}

// prometheusProgram returns the program prometheus.
func prometheusProgram(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("FALLDUE_TEST_PROMETHEUS"); program != "" {
		return program
	}
	if program, err := exec.LookPath("prometheus"); err == nil {
		return program
	}
	out, err := exec.CommandContext(t.Context(), "../../.ci/prometheus").Output()
	if err != nil {
		t.Fatalf("there is no Prometheus: install one, or set FALLDUE_TEST_PROMETHEUS to its path; .ci/prometheus, which gets the package of Debian, fails: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// dashboardExpressions returns the expressions of a dashboard.
func dashboardExpressions(t *testing.T, name string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "grafana", name))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$queue", ".*", "$kind", ".*")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			list = append(list, variables.Replace(q.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		list = append(list, a.Expr)
	}
	if len(list) < 25 {
		t.Fatalf("%d expressions", len(list))
	}
	return list
}

// ruleExpressions returns the expressions of the rules.
func ruleExpressions(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../../grafana/falldue.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^ +expr: (?:>-\n)?((?:.+\n)(?: {10}.+\n)*)`).FindAllStringSubmatch(string(text), -1) {
		list = append(list, strings.Join(strings.Fields(found[1]), " "))
	}
	if len(list) < 13 {
		t.Fatalf("%d expressions", len(list))
	}
	return list
}
