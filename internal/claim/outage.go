package claim

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// outage tracks whether the claims of a poller, or the searches of the sweeper, fail. When a statement succeeds
// after an outage, all pollers of the worker try again.
type outage struct {
	all    *Pollers // of the worker
	events events

	woken   chan struct{} // signalled when the database has answered another part of the worker
	failing atomic.Bool   // nothing has succeeded since the last failure
	away    atomic.Bool   // at the last failure, the database did not answer

	failures int // in a row; only the owner's loop uses it
}

// pause returns how long to wait after a failure: longer if nothing has succeeded since the last failure.
func (o *outage) pause() time.Duration {
	if !o.failing.Swap(true) {
		o.failures = 0
	}
	o.failures++
	return retry.ErrorPause(o.failures - 1)
}

// await waits for a time after a failure of a kind, or until the database has answered another
// part of the worker.
func (o *outage) await(ctx context.Context, kind retry.FailureKind, wait time.Duration) {
	o.away.Store(kind == retry.Outage)
	retry.Await(ctx, o.woken, wait+rand.N(wait/4))
}

// answered records that a search or a claim has succeeded.
func (o *outage) answered() {
	if !o.failing.Swap(false) {
		return
	}
	o.all.Answered()
	if o.all.endOutage() {
		o.events.answers()
	}
}
