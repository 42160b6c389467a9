package webhooks

import (
	"context"
	"errors"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Main runs a program on the database of a DSN until ctx ends.
func Main(ctx context.Context, dsn string, program func(context.Context, *Service) error) (err error) {
	pool, err := OpenPool(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	traces, shutdown, err := exportTraces(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(context.WithoutCancel(ctx))) }()
	s, err := New(pool, traces)
	if err != nil {
		return err
	}
	return program(ctx, s)
}

// exportTraces sends traces to the backend that OTEL_EXPORTER_OTLP_ENDPOINT names, or to none.
func exportTraces(ctx context.Context) (trace.TracerProvider, func(context.Context) error, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(spans))
	return provider, provider.Shutdown, nil
}
