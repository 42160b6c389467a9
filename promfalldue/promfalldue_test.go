package promfalldue_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/signals"
)

// gathered returns the values of a metric, or the counts of a histogram, by the values of its labels.
func gathered(t *testing.T, reg prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			found[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

func TestEveryOutcomeIsExported(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		reg := prometheus.NewPedanticRegistry()
		m, err := promfalldue.New(reg, promfalldue.Config{Exemplar: func(context.Context) prometheus.Labels {
			return prometheus.Labels{"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"}
		}})
		if err != nil {
			t.Fatal(err)
		}
		q, _ := signalstest.Queue(t, engine, falldue.Config{Hooks: m.Hooks()})
		m.Observe(q)
		if _, err := signalstest.Kind.Enqueue(t.Context(), q, "done", falldue.EnqueueOptions{Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		before := gathered(t, reg, "falldue_runs_total")
		for _, o := range []falldue.Outcome{falldue.OutcomeDead, falldue.OutcomeDiscarded, falldue.OutcomeLost} {
			if v, ok := before["kind=pay outcome="+string(o)+" queue=default"]; !ok || v != 0 {
				t.Errorf("before the first run, the runs are %v, without %s", before, o)
			}
		}
		signalstest.RunAll(t, q)
		runs := gathered(t, reg, "falldue_runs_total")
		for _, o := range signalstest.Outcomes {
			if runs["kind=pay outcome="+string(o.Written)+" queue=default"] == 0 {
				t.Errorf("the runs are %v, without %s", runs, o.Written)
			}
		}
		if got := gathered(t, reg, "falldue_handler_seconds"); got["error_type=*signalstest.BankError kind=pay outcome=dead queue=default"] != 1 {
			t.Errorf("handlers are %v", got)
		}
		if got := gathered(t, reg, "falldue_tasks"); got["kind=pay queue=default state=open"] != 1 { // sampled before the runs
			t.Errorf("tasks are %v", got)
		}
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("lint finds %v, error %v", problems, err)
		}
		server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
		defer server.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(text), `# {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"}`) {
			t.Errorf("the page has no exemplar; error %v\n%s", err, text)
		}
	})
}

// TestMetricsAreThoseOfTheTable: with the same names, labels, types and texts.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	m, err := promfalldue.New(nil, promfalldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 100)
	m.Describe(descs)
	close(descs)
	var got, want []string
	for d := range descs {
		got = append(got, d.String())
	}
	for _, metric := range signals.Metrics() {
		want = append(want, prometheus.NewDesc(metric.Name, metric.Help, metric.Labels, nil).String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTwoQueuesInOneRegistryAreRefused(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	for i := range 2 {
		_, err := promfalldue.New(reg, promfalldue.Config{})
		var twice prometheus.AlreadyRegisteredError
		if i > 0 && (!errors.As(err, &twice) || !strings.HasPrefix(err.Error(), "promfalldue: register the metrics: ")) || i == 0 && err != nil {
			t.Errorf("registration %d: %v", i, err)
		}
	}
}

// TestRunsAreCheap does not run in parallel: it counts allocations.
func TestRunsAreCheap(t *testing.T) { signalstest.CheckAllocations(t, newRecorder(t)) }

func BenchmarkRun(b *testing.B) { signalstest.Benchmark(b, newRecorder(b)) }

func newRecorder(t testing.TB) *signals.Recorder {
	t.Helper()
	m, err := promfalldue.New(nil, promfalldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Recorder()
}
