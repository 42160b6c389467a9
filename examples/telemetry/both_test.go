package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/otelfalldue"
	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/tasktest"
)

// observed returns a queue whose traces go to a provider, and whose metrics go to a registry and name the traces.
func observed(db *sqlx.DB, traces trace.TracerProvider, registry *prometheus.Registry) (*falldue.Queue, error) {
	metrics, err := promfalldue.New(registry, promfalldue.Config{
		Exemplar: func(ctx context.Context) prometheus.Labels {
			span := trace.SpanContextFromContext(ctx)
			if !span.IsSampled() {
				return nil
			}
			return prometheus.Labels{"trace_id": span.TraceID().String(), "span_id": span.SpanID().String()}
		},
	})
	if err != nil {
		return nil, err
	}
	spans, err := otelfalldue.New(otelfalldue.Config{TracerProvider: traces})
	if err != nil {
		return nil, err
	}
	queue, err := falldue.New(db, falldue.Config{Hooks: metrics.Hooks()})
	if err != nil {
		return nil, err
	}
	if err := spans.Observe(queue); err != nil {
		return nil, err
	}
	metrics.Observe(queue)
	return queue, nil
}

// TestTracesAndPrometheus: the trace of a run has a link to the trace of its enqueue, and the metrics name the trace of
// the run.
func TestTracesAndPrometheus(t *testing.T) {
	t.Parallel()
	recorder, registry := tracetest.NewSpanRecorder(), prometheus.NewRegistry()
	traces := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	queue, err := observed(testdb.Open(t, testdb.SQLite), traces, registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := queue.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	hello := falldue.NewKind[string]("hello", falldue.KindConfig{})
	falldue.Handle(queue, hello, func(context.Context, falldue.Task[string]) error { return nil })
	ctx, request := traces.Tracer("test").Start(t.Context(), "request")
	if _, err := hello.Enqueue(ctx, queue, "Ada"); err != nil {
		t.Fatal(err)
	}
	request.End()
	tasktest.Drain(t, queue)
	run := ""
	for _, span := range recorder.Ended() {
		if span.Name() != "process hello" {
			continue
		}
		run = span.SpanContext().TraceID().String()
		if links := span.Links(); len(links) != 1 || links[0].SpanContext.TraceID() != request.SpanContext().TraceID() {
			t.Errorf("the run has the links %v, want one to the trace of the request", links)
		}
	}
	page := httptest.NewRecorder()
	scrape := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	scrape.Header.Set("Accept", "application/openmetrics-text")
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(page, scrape)
	for _, want := range []string{`falldue_runs_total{kind="hello",outcome="done",queue="default"} 1`, `trace_id="` + run + `"`} {
		if run == "" || !strings.Contains(page.Body.String(), want) {
			t.Errorf("the metrics have no %s of the run %q\n%s", want, run, page.Body)
		}
	}
}
