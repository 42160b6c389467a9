// Package hooks lets other packages of this module into a queue. The root package imports it and
// sets Open, so that neither the queue nor its tasks have exported methods for that.
package hooks

import (
	"context"

	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/store"
)

// Open returns the internals of a *falldue.Queue, of a *falldue.EnqueueParams, or of a pointer to a
// falldue.Task.
var Open func(x any) any

// Of returns the internals of x as I: the methods that the caller needs, which the root package
// has in its file internals.go.
func Of[I any](x any) I { return Open(x).(I) }

// StoreOf returns the store of a *falldue.Queue.
func StoreOf(q any) *store.Store { return Of[interface{ Store() *store.Store }](q).Store() }

// TaskCalls is what the methods of a falldue.Task call: a run of a worker, or a record of package
// tasktest.
type TaskCalls interface {
	DoneTx(ctx context.Context, tx store.Tx) error
	SetResult(json []byte) error
	// MaxPayload returns the largest size of a result.
	MaxPayload() int
	// KeepsDone reports whether the task stays in the table when it is done.
	KeepsDone() bool
	Progress(fraction float64, message string)
	// Steps returns the steps of the task, for package steps.
	Steps() *steplog.Steps
}
