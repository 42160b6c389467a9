package signals_test

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/signals"
)

func ExampleLogRuns() {
	var q *falldue.Queue
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))

	q.Use(signals.LogRuns(logger, signals.LogOptions{SampleDone: 0.01}))
}

func ExampleHealth() {
	var q *falldue.Queue

	http.Handle("/health/", signals.Health(q))
}

func ExampleJoinHooks() {
	var metrics, mine falldue.Hooks

	cfg := falldue.Config{Hooks: signals.JoinHooks(metrics, mine)}
	_ = cfg
}
