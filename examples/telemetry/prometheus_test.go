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

// sampler has samples that are as new as possible.
var sampler = signals.SamplerConfig{Every: time.Second, Timeout: time.Minute}

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
	ended := make(chan falldue.Outcome, 10)
	hooks := falldue.Hooks{Event: func(e falldue.Event) {
		if e.Outcome != falldue.OutcomeNone {
			ended <- e.Outcome
		}
	}}
	p := &scraped{}
	var workers []*falldue.Queue
	for range 3 {
		reg := prometheus.NewRegistry()
		q := export(t, reg, db, hooks)
		falldue.Handle(q, signalstest.Kind, func(_ context.Context, task falldue.Task[string]) error {
			if task.Args == "done" {
				return nil
			}
			return &signalstest.BankError{}
		})
		workers = append(workers, q)
		work(t, q)
		p.add(t, promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	}
	p.start(t, program)
	p.wait(t) // counters begin with 0
	for _, args := range []string{"done", "retried", "dead"} {
		signalstest.Enqueue(t.Context(), t, workers[0], args)
	}
	for range 3 {
		select {
		case <-ended:
		case <-t.Context().Done():
			t.Fatal("the tasks have not run")
		}
	}
	p.wait(t)
	names := strings.NewReplacer()
	if dashboard != "falldue.json" {
		names = strings.NewReplacer("outcome=", "messaging_falldue_outcome=", "queue=", "messaging_destination_name=")
	}
	for _, expr := range []string{
		`count(up == 1) == 3`,
		`sum(falldue_runs_total{outcome="done"}) == 1`, `sum(falldue_runs_total{outcome="dead"}) == 1`, `sum(falldue_runs_total{outcome="retried"}) == 1`,
		`max(falldue_workers{queue="default"}) == 3`,
		`max(falldue_sample_age_seconds) < 60`,
	} {
		p.until(t, names.Replace(expr))
	}
	for _, expr := range dashboardExpressions(t, dashboard) {
		if p.ask(t, expr); !silent.MatchString(expr) {
			p.until(t, expr)
		}
	}
	if dashboard == "falldue.json" {
		for _, expr := range ruleExpressions(t) {
			p.ask(t, expr)
		}
	}
}

// silent matches expressions about failures that the test does not cause.
var silent = regexp.MustCompile(`falldue_troubles_total|falldue_overtime_total|falldue_limit_wait|(error_type|existed)!=""|claims_lost`)

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

// until returns when an expression has an answer, and asks again after each scrape.
func (p *scraped) until(t *testing.T, expr string) {
	t.Helper()
	for deadline := time.Now().Add(testdb.Patience); len(p.ask(t, expr)) == 0; p.wait(t) {
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
