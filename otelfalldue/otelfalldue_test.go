package otelfalldue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/otelfalldue"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/signals"
	"github.com/falldue/falldue/tasktest"
)

// service is a queue whose traces and metrics stay in memory.
type service struct {
	t      *testing.T
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tracer trace.Tracer
	queue  *falldue.Queue
	db     *sqlx.DB
}

func newService(t *testing.T, engine string, cfg otelfalldue.Config, worker ...falldue.Config) *service {
	t.Helper()
	return makeService(t, cfg, worker, func(c falldue.Config) (*falldue.Queue, *sqlx.DB) { return signalstest.Queue(t, engine, c) })
}

// newServiceOn returns another process of a service, without handlers.
func newServiceOn(t *testing.T, db *sqlx.DB, cfg otelfalldue.Config) *service {
	t.Helper()
	return makeService(t, cfg, nil, func(c falldue.Config) (*falldue.Queue, *sqlx.DB) {
		q, err := falldue.New(db, c)
		if err != nil {
			t.Fatal(err)
		}
		return q, db
	})
}

func makeService(t *testing.T, cfg otelfalldue.Config, worker []falldue.Config, queue func(falldue.Config) (*falldue.Queue, *sqlx.DB)) *service {
	t.Helper()
	s := &service{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	s.tracer = tp.Tracer("test")
	cfg.TracerProvider, cfg.MeterProvider = tp, mp
	o, err := otelfalldue.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	worker = append(worker, falldue.Config{})
	worker[0].Hooks = o.Hooks()
	s.queue, s.db = queue(worker[0])
	if err := o.Observe(s.queue); err != nil {
		t.Fatal(err)
	}
	return s
}

// request calls f in a span, as a handler of HTTP is called.
func (s *service) request(f func(ctx context.Context)) trace.SpanContext {
	s.t.Helper()
	ctx, span := s.tracer.Start(s.t.Context(), "POST /orders")
	f(ctx)
	span.End()
	return span.SpanContext()
}

// named returns the spans of a name.
func (s *service) named(name string) (list tracetest.SpanStubs) {
	for _, span := range s.spans.GetSpans() {
		if span.Name == name {
			list = append(list, span)
		}
	}
	return list
}

func attributesOf(span tracetest.SpanStub) map[string]string {
	found := map[string]string{}
	for _, a := range span.Attributes {
		found[string(a.Key)] = a.Value.String()
	}
	return found
}

// TestATraceLeadsToEachAttempt: from the request over the enqueue and the row to each run.
func TestATraceLeadsToEachAttempt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := newService(t, engine, otelfalldue.Config{})
		for args, o := range signalstest.Outcomes {
			s.spans.Reset()
			var id int64
			request := s.request(func(ctx context.Context) { id = signalstest.Enqueue(ctx, t, s.queue, args) })
			tasktest.RunOne(t, s.queue)
			sent, ran := s.named("enqueue pay"), s.named("process pay")
			if len(sent) != 1 || len(ran) != 1 {
				t.Fatalf("%s: the spans are %v", args, s.spans.GetSpans())
			}
			if sent[0].Parent.SpanID() != request.SpanID() || sent[0].SpanKind != trace.SpanKindProducer {
				t.Errorf("%s: the span of the enqueue is %+v", args, sent[0])
			}
			run := ran[0]
			if run.SpanKind != trace.SpanKindConsumer || run.Parent.IsValid() || run.SpanContext.TraceID() == request.TraceID() ||
				len(run.Links) != 1 || run.Links[0].SpanContext.SpanID() != sent[0].SpanContext.SpanID() || run.Links[0].SpanContext.TraceID() != request.TraceID() {
				t.Errorf("%s: the span of the run is %+v", args, run)
			}
			a := attributesOf(run)
			for key, want := range map[string]string{
				"messaging.system": "falldue", "messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.destination.name": "default",
				"messaging.message.id": fmt.Sprint(id), "messaging.falldue.kind": "pay", "messaging.falldue.attempt": "1", "messaging.falldue.outcome": string(o.Predicted),
			} {
				if a[key] != want {
					t.Errorf("%s: %s is %q, want %q", args, key, a[key], want)
				}
			}
			failed := signals.Failed(o.Predicted)
			if (run.Status.Code == codes.Error) != failed || failed != (a["error.type"] != "") || failed != (len(run.Events) == 1) {
				t.Errorf("%s: the status is %v, error.type %q, events %v", args, run.Status, a["error.type"], run.Events)
			}
			if args == "panics" && (a["error.type"] != "panic" || !slices.ContainsFunc(run.Events[0].Attributes, func(a attribute.KeyValue) bool {
				return a.Key == "exception.stacktrace" && strings.Contains(a.Value.AsString(), "goroutine")
			})) {
				t.Errorf("the event of a panic is %v", run.Events)
			}
		}
	})
}

// TestSpansOfCalls: a call is one span, however many tasks it stores.
func TestSpansOfCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, testdb.SQLite, otelfalldue.Config{})
	other := falldue.NewKind[string]("ship", falldue.KindConfig{})
	falldue.Handle(s.queue, other, func(context.Context, falldue.Task[string]) error { return nil })
	s.request(func(ctx context.Context) {
		if _, err := s.queue.EnqueueMany(ctx, signalstest.Kind.Params("done"), signalstest.Kind.Params("done"), other.Params("")); err != nil {
			t.Error(err)
		}
	})
	sent := s.named("enqueue default")
	if len(sent) != 1 || attributesOf(sent[0])["messaging.batch.message_count"] != "3" {
		t.Fatalf("the spans are %v", s.spans.GetSpans())
	}
	tasktest.Drain(t, s.queue)
	for _, run := range slices.Concat(s.named("process pay"), s.named("process ship")) {
		if len(run.Links) != 1 || run.Links[0].SpanContext.SpanID() != sent[0].SpanContext.SpanID() {
			t.Errorf("a run has the links %v", run.Links)
		}
	}

	s.spans.Reset() // a transaction that rolls back leaves a span and no run
	s.request(func(ctx context.Context) {
		tx := s.db.MustBeginTx(ctx, nil)
		if _, err := signalstest.Kind.EnqueueTx(ctx, s.queue, tx, "done"); err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
	tasktest.Drain(t, s.queue)
	if sent := s.named("enqueue pay"); len(sent) != 1 || attributesOf(sent[0])["messaging.falldue.transaction"] != "true" || len(s.named("process pay")) != 0 {
		t.Errorf("the spans of a transaction are %v", s.spans.GetSpans())
	}

	s.spans.Reset() // a flow is one call
	s.request(func(ctx context.Context) {
		if _, err := flow.Chain(signalstest.Kind.Params("done"), other.Params("")).Enqueue(ctx, s.queue); err != nil {
			t.Error(err)
		}
	})
	tasktest.Drain(t, s.queue)
	if sent, ran := s.named("enqueue default"), s.named("process ship"); len(sent) != 1 || len(ran) != 1 || len(ran[0].Links) != 1 || ran[0].Links[0].SpanContext.SpanID() != sent[0].SpanContext.SpanID() {
		t.Errorf("the spans of a flow are %v", s.spans.GetSpans())
	}

	s.spans.Reset() // ticks are outside of traces, and make none
	scheduler, err := periodic.New(s.queue, periodic.Schedule{Name: "hourly", Spec: "@every 1h", Task: signalstest.Kind.Params("done")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := periodic.Trigger(t.Context(), s.queue, "hourly"); err != nil {
		t.Fatal(err)
	}
	tasktest.Drain(t, s.queue)
	if ran := s.named("process pay"); len(ran) != 1 || len(ran[0].Links) != 0 || len(s.spans.GetSpans()) != 1 {
		t.Errorf("the spans of a tick are %v", s.spans.GetSpans())
	}
}

// TestReleasedRunsDidNotFail: the worker stops while a handler runs. The next attempt has a span with the same link.
func TestReleasedRunsDidNotFail(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := newService(t, engine, otelfalldue.Config{}, falldue.Config{ShutdownTimeout: -1, Logger: slog.New(slog.DiscardHandler)})
		began := make(chan struct{})
		var again atomic.Bool
		upload := falldue.NewKind[int]("upload", falldue.KindConfig{})
		falldue.Handle(s.queue, upload, func(ctx context.Context, _ falldue.Task[int]) error {
			if again.Swap(true) {
				return nil
			}
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		s.request(func(ctx context.Context) {
			if _, err := upload.Enqueue(ctx, s.queue, 1); err != nil {
				t.Fatal(err)
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.queue.Run(ctx) }()
		<-began
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		tasktest.RunOne(t, s.queue)
		sent, ran := s.named("enqueue upload"), s.named("process upload")
		if len(sent) != 1 || len(ran) != 2 {
			t.Fatalf("the spans are %v", s.spans.GetSpans())
		}
		for i, outcome := range []falldue.Outcome{falldue.OutcomeReleased, falldue.OutcomeDone} {
			a := attributesOf(ran[i])
			if a["messaging.falldue.outcome"] != string(outcome) || a["error.type"] != "" || ran[i].Status.Code != codes.Unset || len(ran[i].Events) != 0 {
				t.Errorf("run %d has the status %v and the attributes %v", i, ran[i].Status, a)
			}
			if len(ran[i].Links) != 1 || ran[i].Links[0].SpanContext.SpanID() != sent[0].SpanContext.SpanID() {
				t.Errorf("run %d has the links %v", i, ran[i].Links)
			}
		}
	})
}

// TestEachAttemptLeadsToTheRequest: a retry in another process, and one that a person asks for, have links to the
// same enqueue. A transaction that commits has them, too.
func TestEachAttemptLeadsToTheRequest(t *testing.T) {
	t.Parallel()
	s := newService(t, testdb.SQLite, otelfalldue.Config{})
	other := newServiceOn(t, s.db, otelfalldue.Config{})
	falldue.Handle(other.queue, signalstest.Kind, func(context.Context, falldue.Task[string]) error { return nil })
	var id int64
	s.request(func(ctx context.Context) {
		tx := s.db.MustBeginTx(ctx, nil)
		receipt, err := signalstest.Kind.EnqueueTx(ctx, s.queue, tx, "retried", falldue.EnqueueOptions{MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		id = receipt.ID
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	})
	sent := s.named("enqueue pay")
	tasktest.RunOne(t, s.queue)
	if err := other.queue.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	tasktest.RunOne(t, other.queue)
	if len(sent) != 1 || attributesOf(sent[0])["messaging.falldue.transaction"] != "true" {
		t.Fatalf("the spans are %v", s.spans.GetSpans())
	}
	for i, ran := range []tracetest.SpanStubs{s.named("process pay"), other.named("process pay")} {
		if len(ran) != 1 || len(ran[0].Links) != 1 || ran[0].Links[0].SpanContext.SpanID() != sent[0].SpanContext.SpanID() {
			t.Errorf("the spans of process %d are %v", i, ran)
		}
	}
	s.request(func(ctx context.Context) { // a failed call
		if _, err := signalstest.Kind.Enqueue(ctx, s.queue, "done", falldue.EnqueueOptions{MaxAttempts: -1}); err == nil {
			t.Error("the call has not failed")
		}
	})
	if sent := s.named("enqueue pay"); len(sent) != 2 || sent[1].Status.Code != codes.Error || len(sent[1].Events) != 1 {
		t.Errorf("the spans of a failed call are %v", sent)
	}
}

func TestRunsMayBeChildren(t *testing.T) {
	t.Parallel()
	s := newService(t, testdb.SQLite, otelfalldue.Config{Child: func(r *falldue.Run) bool { return r.Kind == "pay" }})
	request := s.request(func(ctx context.Context) { signalstest.Enqueue(ctx, t, s.queue, "done") })
	tasktest.RunOne(t, s.queue)
	run, sent := s.named("process pay")[0], s.named("enqueue pay")[0]
	if run.SpanContext.TraceID() != request.TraceID() || run.Parent.SpanID() != sent.SpanContext.SpanID() || len(run.Links) != 0 {
		t.Errorf("the span of the run is %+v", run)
	}
}

// TestMetadataIsRespected: full metadata has no room for a trace, and foreign or hostile contexts are
// left alone.
func TestMetadataIsRespected(t *testing.T) {
	t.Parallel()
	s := newService(t, testdb.SQLite, otelfalldue.Config{})
	for name, metadata := range map[string]map[string]string{
		"full":              {"note": strings.Repeat("x", 10<<10-20)},
		"hostile":           {"traceparent": "00-" + strings.Repeat("z", 300), "tracestate": "\x01=\u202e"},
		"a foreign context": {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	} {
		s.spans.Reset()
		s.request(func(ctx context.Context) {
			if _, err := signalstest.Kind.Enqueue(ctx, s.queue, "done", falldue.EnqueueOptions{Metadata: metadata}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		tasktest.RunOne(t, s.queue)
		run := s.named("process pay")
		if len(run) != 1 || len(run[0].Links) != map[string]int{"a foreign context": 1}[name] {
			t.Errorf("%s: the spans are %v", name, s.spans.GetSpans())
		}
	}
}

// refusing makes no instruments, and its provider makes such a meter.
type (
	refusing         struct{ noop.Meter }
	refusingProvider struct{ noop.MeterProvider }
)

var errRefused = errors.New("no instruments")

func (refusingProvider) Meter(string, ...metric.MeterOption) metric.Meter { return refusing{} }

func (refusing) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, errRefused
}

func TestErrorsNameThePackage(t *testing.T) {
	t.Parallel()
	_, err := otelfalldue.New(otelfalldue.Config{MeterProvider: refusingProvider{}})
	if !errors.Is(err, errRefused) || !strings.HasPrefix(err.Error(), "otelfalldue: make the instrument ") {
		t.Errorf("error %v", err)
	}
}

// TestMetricsAreThoseOfTheTable: each metric has the name, unit and attributes of the table.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	s := newService(t, testdb.SQLite, otelfalldue.Config{})
	signalstest.RunAll(t, s.queue)
	if err := s.queue.Pause(t.Context(), falldue.Subject{Kind: "pay"}, falldue.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]metricdata.Metrics{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	unseen := map[string]bool{"falldue.troubles": true, "falldue.overtime": true, "falldue.lanes": true, "falldue.limit_wait": true, "falldue.override_age": true, "falldue.schedule_late": true, "falldue.workers": true, "falldue.handlers.running": true, "falldue.handlers.limit": true}
	for _, m := range signals.Metrics() {
		found, ok := got[m.OTel]
		delete(got, m.OTel)
		if !ok {
			if !unseen[m.OTel] {
				t.Errorf("%s is missing", m.OTel)
			}
			continue
		}
		if found.Unit != m.Unit || found.Description != m.Help {
			t.Errorf("%s is in %q: %s", m.OTel, found.Unit, found.Description)
		}
		allowed := map[string]bool{"messaging.system": m.OfMessaging(), "messaging.operation.name": m.Operation != ""}
		for _, label := range m.Labels {
			allowed[signals.Attribute(label)] = true
		}
		for _, set := range setsOf(found.Data) {
			for _, a := range set.ToSlice() {
				if !allowed[string(a.Key)] {
					t.Errorf("%s has the attribute %s", m.OTel, a.Key)
				}
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("%v are not in the table", slices.Collect(maps.Keys(got)))
	}
}

func setsOf(data metricdata.Aggregation) (list []attribute.Set) {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			list = append(list, p.Attributes)
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			list = append(list, p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			list = append(list, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			list = append(list, p.Attributes)
		}
	}
	return list
}

// TestRunsAreCheap does not run in parallel: it counts allocations.
func TestRunsAreCheap(t *testing.T) { signalstest.CheckAllocations(t, newRecorder(t)) }

func BenchmarkRun(b *testing.B) { signalstest.Benchmark(b, newRecorder(b)) }

func newRecorder(t testing.TB) *signals.Recorder {
	t.Helper()
	s, err := otelfalldue.New(otelfalldue.Config{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
	if err != nil {
		t.Fatal(err)
	}
	return s.Recorder()
}
