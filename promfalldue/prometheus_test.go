package promfalldue_test

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
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/promfalldue"
)

// TestPrometheusScrapesWorkers: a real Prometheus, whose program FALLDUE_TEST_PROMETHEUS names, scrapes
// three workers with the rules of this repository; "make alerts" runs it.
func TestPrometheusScrapesWorkers(t *testing.T) {
	program := os.Getenv("FALLDUE_TEST_PROMETHEUS")
	if program == "" {
		t.Skip("make alerts runs this test with a Prometheus")
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		first, db := signalstest.Queue(t, engine, falldue.Config{})
		for _, args := range []string{"done", "retried", "dead"} {
			signalstest.Enqueue(t.Context(), t, first, args)
		}
		var targets []string
		for range 3 {
			reg := prometheus.NewRegistry()
			m, err := promfalldue.New(reg, promfalldue.Config{})
			if err != nil {
				t.Fatal(err)
			}
			q, err := falldue.New(db, falldue.Config{Hooks: m.Hooks()})
			if err != nil {
				t.Fatal(err)
			}
			m.Observe(q)
			falldue.Handle(q, signalstest.Kind, func(_ context.Context, task falldue.Task[string]) error {
				if task.Args == "done" {
					return nil
				}
				return &signalstest.BankError{}
			})
			work(t, q)
			server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
			t.Cleanup(server.Close)
			targets = append(targets, strings.TrimPrefix(server.URL, "http://"))
		}
		ask := start(t, program, targets)
		for _, expr := range []string{
			`count(up == 1) == 3`,
			`sum(falldue_runs_total{outcome="done"}) == 1 and on () sum(falldue_runs_total{outcome="dead"}) == 1 and on () sum(falldue_runs_total{outcome="retried"}) == 1`,
			`max(falldue_workers{queue="default"}) == 3`,
			`max(falldue_tasks{kind="pay",state="dead"}) == 1`,
			`max(falldue_sample_age_seconds) < 60`,
			`histogram_quantile(0.95, sum by (le) (falldue_handler_seconds_bucket)) > 0`,
		} {
			for deadline := time.Now().Add(testdb.Patience); ; time.Sleep(100 * time.Millisecond) { // Prometheus has no event for a scrape
				status, answer := ask(expr)
				if status == "success" && strings.Contains(answer, `"value"`) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s does not become true: %s", expr, answer)
				}
			}
		}
		for _, expr := range expressions(t) {
			if status, answer := ask(expr); status != "success" {
				t.Errorf("%s: %s", expr, answer)
			}
		}
	})
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

// start starts a Prometheus that scrapes targets each second, and returns a function that asks it.
func start(t *testing.T, program string, targets []string) (ask func(expr string) (status, answer string)) {
	t.Helper()
	rules, err := filepath.Abs("../grafana/falldue.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: falldue\n    static_configs: [{targets: [%s]}]\n",
		rules, `"`+strings.Join(targets, `", "`)+`"`)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	listening := regexp.MustCompile(`address=(127\.0\.0\.1:[1-9]\d*)`)
	address := ""
	lines := bufio.NewScanner(stderr)
	var log strings.Builder
	for address == "" && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	if address == "" {
		t.Fatalf("Prometheus does not listen:\n%s", &log)
	}
	go func() {
		for lines.Scan() { // so that it can log
		}
	}()
	return func(expr string) (status, answer string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/v1/query?query="+url.QueryEscape(expr), nil)
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
			Data          json.RawMessage
		}
		if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
			return "", err.Error() // it is not ready yet
		}
		return body.Status, body.Error + string(body.Data)
	}
}

// expressions returns the expressions of the rules.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../grafana/falldue.rules.yml")
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
