package worker

import (
	"log/slog"
	"time"
)

// events logs how a worker starts and stops.
// It has one method for each log line.
type events struct{ log *slog.Logger }

// stopping reports that a worker waits for its handlers before it stops, unless none run.
func (e events) stopping(handlers int, timeout time.Duration) {
	if handlers > 0 {
		e.log.Info("falldue: the worker stops and waits for its handlers", "count", handlers, "timeout", timeout)
	}
}

func (e events) kindWithoutQueue(kind, queue string) {
	e.log.Warn("falldue: this worker handles a kind and does not work on the queue of the kind", "kind", kind, "queue", queue)
}
