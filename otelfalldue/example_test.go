package otelfalldue_test

import (
	"log"
	"log/slog"

	"github.com/jmoiron/sqlx"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/otelfalldue"
	"github.com/falldue/falldue/signals"
)

func Example() {
	var db *sqlx.DB
	var tracerProvider trace.TracerProvider
	var meterProvider metric.MeterProvider
	logger := slog.Default()

	s, err := otelfalldue.New(otelfalldue.Config{TracerProvider: tracerProvider, MeterProvider: meterProvider})
	if err != nil {
		log.Fatal(err)
	}
	q, err := falldue.New(db, falldue.Config{Hooks: s.Hooks()})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Observe(q); err != nil {
		log.Fatal(err)
	}
	q.Use(signals.LogRuns(logger, signals.LogOptions{}))
}

func ExampleConfig_child() {
	s, err := otelfalldue.New(otelfalldue.Config{
		Child: func(run *falldue.Run) bool { return run.Kind == "order.charge" },
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = s
}
