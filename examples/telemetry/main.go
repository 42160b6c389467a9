// Telemetry is a service whose traces and metrics go to any backend that takes OTLP, such as the OpenTelemetry
// Collector, the agent of Datadog, or Sentry. The variables OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS
// name it, as docs/observability.md shows.
package main

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"

	"github.com/jmoiron/sqlx"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/otelfalldue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "telemetry.db"); err != nil {
		log.Print(err)
	}
}

// greet is the kind of the service's tasks.
var greet = falldue.NewKind[string]("greet", falldue.KindConfig{})

// run runs the service until ctx ends, and sends then the last of its traces and metrics.
func run(ctx context.Context, file string) (err error) {
	db, err := sqlx.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer db.Close()
	shutdown, err := export(ctx)
	if err != nil {
		return err
	}
	// The last metrics need the database: shutdown comes before Close.
	defer func() { err = errors.Join(err, shutdown(context.WithoutCancel(ctx))) }()
	q, err := newQueue(db)
	if err != nil {
		return err
	}
	if err := q.Migrate(ctx); err != nil {
		return err
	}
	falldue.Handle(q, greet, func(context.Context, falldue.Task[string]) error { return nil })
	request, span := otel.Tracer("telemetry").Start(ctx, "GET /greet")
	_, err = greet.Enqueue(request, q, "world")
	span.End()
	return errors.Join(err, q.Run(ctx))
}

// export sends the traces and metrics of the global providers by OTLP until shutdown.
func export(ctx context.Context) (shutdown func(context.Context) error, err error) {
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	metrics, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, err
	}
	traces := trace.NewTracerProvider(trace.WithBatcher(spans))
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics)))
	otel.SetTracerProvider(traces)
	otel.SetMeterProvider(meters)
	return func(ctx context.Context) error {
		return errors.Join(traces.Shutdown(ctx), meters.Shutdown(ctx))
	}, nil
}

// newQueue returns a queue with traces and metrics.
func newQueue(db *sqlx.DB) (*falldue.Queue, error) {
	s, err := otelfalldue.New(otelfalldue.Config{})
	if err != nil {
		return nil, err
	}
	q, err := falldue.New(db, falldue.Config{Hooks: s.Hooks()})
	if err != nil {
		return nil, err
	}
	return q, s.Observe(q)
}
