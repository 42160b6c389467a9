package store

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// rivals decides which free permits claims leave to other workers.
//
// Workers that wait for permits of one limit see the same permits become free. If each took any of them, most claims
// would lose their permits to other claims. A worker whose tasks end claims again, and needs the permits of these tasks.
// So for a while after a claim has lost a permit, claims leave alone the permits that other workers have taken recently.
type rivals struct {
	mark   int64         // of this store's permits: the upper half of their tokens
	recent time.Duration // for how long a permit is left to the worker that took it
	lost   atomic.Int64  // when a claim last lost a permit; nanoseconds since 1970
}

const (
	recentlyTaken = 100 * time.Millisecond
	rivalry       = time.Second // after the last lost permit
)

func (r *rivals) begin() { r.mark, r.recent = 1+rand.Int64N(1<<31-1), recentlyTaken }

// token returns a token for the permits of a claim.
func (r *rivals) token() int64 { return r.mark<<32 | rand.Int64N(1<<32) }

// lose records that a claim has lost a permit.
func (r *rivals) lose() { r.lost.Store(time.Now().UnixNano()) }

// recently reports whether a claim has lost a permit a short time ago.
func (r *rivals) recently() bool { return time.Now().UnixNano()-r.lost.Load() <= int64(rivalry) }

// leave removes from a quota the free permits that claims leave to other workers.
func (r *rivals) leave(q *quota) {
	if q.Form != Running || !r.recently() {
		return
	}
	free := len(q.free)
	q.free = slices.DeleteFunc(q.free, func(p *statements.Permit) bool {
		return p.Token > 0 && p.Token>>32 != r.mark && Duration(p.Now-p.Until) < r.recent
	})
	q.room = max(q.room-(free-len(q.free)), 0)
}
