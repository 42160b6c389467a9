package claim

import (
	"strings"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Pollers are the pollers of a worker, by queue.
type Pollers map[string]*Poller

// Hint notifies the poller of a queue of a task in a lane, which falls due after wait. It reports whether
// the worker runs such tasks.
func (s Pollers) Hint(queue string, at store.Lane, wait time.Duration) bool {
	p := s[queue]
	return p != nil && p.Hint(at, wait)
}

// SweptAt returns when the last sweep of any poller ended, or the zero time.
func (s Pollers) SweptAt() (last time.Time) {
	for _, p := range s {
		if at := p.search.endedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// ClaimedAt returns when a claim of any poller last returned a task, or a time long ago.
func (s Pollers) ClaimedAt() time.Time {
	last := int64(0)
	for _, p := range s {
		last = max(last, p.lastClaim.Load())
	}
	return time.Unix(0, last)
}

// Sleep makes the pollers sweep seldom while the worker is asleep.
func (s Pollers) Sleep(asleep bool) {
	for _, p := range s {
		p.search.asleep.Store(asleep)
	}
}

// Waiting reports whether a poller waits for tasks.
func (s Pollers) Waiting() bool {
	for _, p := range s {
		if p.waits() {
			return true
		}
	}
	return false
}

// Notified makes the pollers of the queues in a notification sweep, or all pollers if the notification names no queue.
func (s Pollers) Notified(notice string) {
	s.Answered()
	if notice == "" {
		s.SweepNow()
	}
	for queue := range strings.FieldsSeq(notice) {
		if p := s[queue]; p != nil {
			p.SweepNow()
		}
	}
}

// Answered wakes the pollers that pause after a failure: the database has answered.
func (s Pollers) Answered() {
	for _, p := range s {
		retry.Signal(p.outage.woken)
		retry.Signal(p.Sweeper.outage.woken)
	}
}

// endOutage records that the database answers, and reports whether a poller or the sweeper had no answer before.
func (s Pollers) endOutage() (was bool) {
	for _, p := range s {
		was = p.outage.away.Swap(false) || was
		was = p.Sweeper.outage.away.Swap(false) || was
	}
	return was
}

// SweepNow makes all pollers sweep soon.
func (s Pollers) SweepNow() {
	for _, p := range s {
		p.SweepNow()
	}
}

// PoliciesChanged makes all pollers use the policies that are in effect now.
func (s Pollers) PoliciesChanged() {
	for _, p := range s {
		p.lanes.Retime()
		p.SweepNow()
	}
}

// Freed notifies the pollers of limits with freed permits. A kind's limit may hold back lanes of any
// queue.
func (s Pollers) Freed(limits []string) {
	for _, p := range s {
		p.Freed(limits)
	}
}

// WakeWaiting wakes the pollers that wait for room for more tasks.
func (s Pollers) WakeWaiting() {
	for _, p := range s {
		retry.Signal(p.Budget.Freed)
	}
}
