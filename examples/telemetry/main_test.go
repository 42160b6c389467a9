package main

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// backend takes OTLP, as the Collector, Datadog's agent and Sentry do.
type backend struct {
	t   *testing.T
	ran chan struct{} // closed with the first span of a run

	mu      sync.Mutex
	paths   []string // of requests
	headers http.Header
	spans   []string // by name
	delta   bool     // counters have the temporality delta
	metrics []string
	failed  float64 // readings of the state
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paths = append(b.paths, r.URL.Path)
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			b.t.Error(err)
			return
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	if err != nil {
		b.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if !strings.HasSuffix(r.URL.Path, "/traces") {
		b.addMetrics(text)
		return
	}
	b.headers = r.Header
	var sent collectortrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(text, &sent); err != nil {
		b.t.Error(err)
	}
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if b.spans = append(b.spans, span.GetName()); span.GetName() == "process greet" {
					close(b.ran)
				}
			}
		}
	}
}

func (b *backend) addMetrics(text []byte) {
	var sent collectormetrics.ExportMetricsServiceRequest
	if err := proto.Unmarshal(text, &sent); err != nil {
		b.t.Error(err)
	}
	for _, resource := range sent.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				b.metrics = append(b.metrics, m.GetName())
				for _, p := range m.GetSum().GetDataPoints() {
					if m.GetName() == "falldue.sample.errors" {
						b.failed += p.GetAsDouble()
					}
				}
				if m.GetName() == "falldue.runs" {
					b.delta = m.GetSum().GetAggregationTemporality() == metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
				}
			}
		}
	}
}

// settings returns the variables that a section of docs/observability.md exports. Their URLs lead to the backend.
func settings(t *testing.T, section, backend string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### "+section+"\n")
	text, _, _ = strings.Cut(text, "\n#")
	found := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^export ([A-Z_]+)="([^"]*)"$`).FindAllStringSubmatch(text, -1) {
		if u, err := url.Parse(line[2]); err == nil && u.Scheme != "" {
			line[2] = backend + u.Path
		}
		found[line[1]] = line[2]
	}
	if len(found) == 0 {
		t.Fatalf("docs/observability.md has no settings for %s", section)
	}
	return found
}

// TestSettingsOfThePage: with the variables of each section, traces and metrics arrive.
func TestSettingsOfThePage(t *testing.T) {
	for _, c := range []struct {
		section string
		header  [2]string
		delta   bool
	}{
		{section: "OpenTelemetry Collector"},
		{section: "Datadog", delta: true},
		{section: "Sentry", header: [2]string{"x-sentry-auth", "sentry sentry_key=PUBLIC_KEY"}},
	} {
		t.Run(c.section, func(t *testing.T) {
			b := &backend{t: t, ran: make(chan struct{})}
			server := httptest.NewServer(b)
			defer server.Close()
			for name, value := range settings(t, c.section, server.URL) {
				t.Setenv(name, value)
			}
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // the spans of the run come before its end
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, filepath.Join(t.TempDir(), "telemetry.db")) }()
			select {
			case <-b.ran:
			case err := <-ended:
				t.Fatalf("the service has ended: %v", err)
			}
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, name := range []string{"GET /greet", "enqueue greet", "process greet"} {
				if !slices.Contains(b.spans, name) {
					t.Errorf("the spans are %v, without %s", b.spans, name)
				}
			}
			for _, name := range []string{"falldue.runs", "messaging.process.duration", "falldue.sample.age"} {
				if !slices.Contains(b.metrics, name) {
					t.Errorf("the metrics are %v, without %s", b.metrics, name)
				}
			}
			if b.failed != 0 {
				t.Errorf("the state could not be read %v times", b.failed)
			}
			if b.delta != c.delta {
				t.Errorf("counters have the temporality delta: %v", b.delta)
			}
			if name := c.header[0]; name != "" && b.headers.Get(name) != c.header[1] {
				t.Errorf("%s is %q, want %q", name, b.headers.Get(name), c.header[1])
			}
			for _, path := range b.paths {
				if !strings.HasSuffix(path, "/v1/traces") && !strings.HasSuffix(path, "/v1/metrics") {
					t.Errorf("a request goes to %s", path)
				}
			}
		})
	}
}
