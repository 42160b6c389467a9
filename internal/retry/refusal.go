// Package retry decides how statements are tried again: how long they may take, how long to pause after a failure,
// and how a batch is halved until the task that the database refuses is alone.
package retry

import (
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// BatchSize is how many tasks one statement takes. A statement that fails is tried with fewer tasks,
// until the task that the database refuses is found. Each success doubles the size.
type BatchSize struct {
	Size     int // tasks of the next statement
	Failures int // statements that failed in a row
}

// NewBatchSize returns the size of a first statement.
func NewBatchSize() BatchSize { return BatchSize{Size: store.MaxBatch} }

// Accepted records that a statement succeeded.
func (p *BatchSize) Accepted() { *p = BatchSize{Size: min(2*p.Size, store.MaxBatch)} }

// Failed records that a statement for n tasks failed with an error of a class, late if the statement timed
// out. It returns what the error may mean, and how long to wait before the next statement.
func (p *BatchSize) Failed(n int, class dialect.Class, late bool) (kind FailureKind, wait time.Duration) {
	kind = KindOf(class, late)
	p.Failures++
	p.Size = (n + 1) / 2
	switch kind {
	case Refused:
		return kind, 0
	case Outage:
		return kind, ErrorPause(p.Failures - 1)
	case timedOut:
		p.Size = (n + 7) / 8 // halves would take too long
	}
	if p.Failures <= FailuresBeforePause {
		return kind, 0
	}
	return kind, ErrorPause(p.Failures - FailuresBeforePause)
}

// Hopeless reports whether to give up a list after a failure of a kind: smaller batches will not succeed
// either.
func (p *BatchSize) Hopeless(kind FailureKind) bool {
	return kind == Outage || p.Failures > FailuresBeforePause
}

// FailuresBeforePause is how often in a row a statement may fail without a pause, unless the
// database is unavailable: enough to find one task among MaxBatch.
const FailuresBeforePause = 12

// FailureKind is what an error of a statement may mean.
type FailureKind int

// The kinds of failures.
const (
	Refused  FailureKind = iota // the database refuses the statement because of one of its tasks
	Unclear                     // perhaps Refused; perhaps the database refuses all statements for now
	timedOut                    // the statement took too long
	Outage                      // the database is unavailable, or closes the connection because of a task
)

// KindOf returns what an error of a statement may mean; late reports whether the
// statement timed out.
func KindOf(class dialect.Class, late bool) FailureKind {
	switch {
	case late:
		return timedOut
	case class == dialect.Disconnected:
		return Outage
	case class == dialect.Other, class == dialect.UniqueViolation, class == dialect.Unencodable:
		return Refused
	}
	return Unclear
}
