package signals

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue"
)

// LogOptions are settings of [LogRuns].
type LogOptions struct {
	// Success is the level of runs that did not fail. Defaults to slog.LevelInfo.
	Success slog.Level
	// SampleDone is the fraction of successful runs that are logged, above 0 and up to 1. 0 means
	// the default, 1. A negative value logs none. Other runs are always logged.
	SampleDone float64
}

// LogRuns returns middleware for [falldue.Queue.Use] that logs a line for each run, "falldue: run". The attributes of
// the line are task, kind, queue, attempt, outcome, took and lag, and error and stack if there are any. For dead tasks
// the level is Error, and for other failures Warn. The line is logged with the context of the run, so an slog handler
// can add the trace: add LogRuns after the middleware that begins spans. A nil logger is [slog.Default].
func LogRuns(logger *slog.Logger, o LogOptions) falldue.Middleware {
	if logger == nil {
		logger = slog.Default()
	}
	if o.SampleDone == 0 {
		o.SampleDone = 1
	}
	return func(next falldue.HandlerFunc) falldue.HandlerFunc {
		return func(ctx context.Context, run *falldue.Run) error {
			start := time.Now()
			err := next(ctx, run)
			took, outcome := time.Since(start), run.Outcome(err)
			level := o.level(outcome)
			if outcome == falldue.OutcomeDone && o.SampleDone < 1 && rand.Float64() >= o.SampleDone || !logger.Enabled(ctx, level) {
				return err
			}
			list := []slog.Attr{
				slog.Int64("task", run.ID), slog.String("kind", run.Kind), slog.String("queue", run.Queue), slog.Int("attempt", run.Attempt),
				slog.String("outcome", string(outcome)), slog.Duration("took", took), slog.Duration("lag", max(run.StartedAt.Sub(run.DueAt), 0)),
			}
			if err := errorOf(outcome, err); err != nil {
				list = append(list, slog.Any("error", err))
			}
			if p, ok := errors.AsType[*falldue.PanicError](err); ok {
				list = append(list, slog.String("stack", p.Stack))
			}
			logger.LogAttrs(ctx, level, "falldue: run", list...)
			return err
		}
	}
}

// level returns the level of a run.
func (o LogOptions) level(outcome falldue.Outcome) slog.Level {
	switch {
	case outcome == falldue.OutcomeDead, outcome == falldue.OutcomeDiscarded:
		return slog.LevelError
	case Failed(outcome):
		return slog.LevelWarn
	}
	return o.Success
}

// Failed reports whether an outcome is a failure: retried, retried_after, dead, discarded or lost.
func Failed(outcome falldue.Outcome) bool {
	switch outcome {
	case falldue.OutcomeRetried, falldue.OutcomeRetriedAfter, falldue.OutcomeDead, falldue.OutcomeDiscarded, falldue.OutcomeLost:
		return true
	}
	return false
}
