package claim

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// Pollers are the pollers of a worker, by queue. Pollers of queues that match a pattern come and go while the worker runs.
type Pollers struct {
	byQueue sync.Map // of *Poller
	unknown func(queue string) bool
	asleep  atomic.Bool
}

// NewPollers returns a set without pollers. unknown is told of a queue that has no poller but may have tasks, and
// reports whether the queue will get one.
func NewPollers(unknown func(queue string) bool) *Pollers { return &Pollers{unknown: unknown} }

// Add adds the poller of a queue, which is swept soon.
func (s *Pollers) Add(p *Poller) {
	s.byQueue.Store(p.Queue, p)
	retry.Signal(p.Sweeper.woken)
}

// Remove removes the poller of a queue.
func (s *Pollers) Remove(queue string) { s.byQueue.Delete(queue) }

// Of returns the poller of a queue, or nil.
func (s *Pollers) Of(queue string) *Poller {
	p, _ := s.byQueue.Load(queue)
	found, _ := p.(*Poller)
	return found
}

// All yields the pollers in any order.
func (s *Pollers) All() iter.Seq[*Poller] {
	return func(yield func(*Poller) bool) {
		s.byQueue.Range(func(_, p any) bool {
			one, _ := p.(*Poller)
			return yield(one)
		})
	}
}

// Queues lists the queues that have a poller, in order.
func (s *Pollers) Queues() (list []string) {
	for p := range s.All() {
		list = append(list, p.Queue)
	}
	slices.Sort(list)
	return list
}

// Hint notifies the poller of a queue of a task in a lane, which falls due after wait. It reports whether
// the worker runs such tasks.
func (s *Pollers) Hint(queue string, at store.Lane, wait time.Duration) bool {
	if p := s.Of(queue); p != nil {
		return p.Hint(at, wait)
	}
	return s.unknown(queue)
}

// SweptAt returns when the last sweep of any poller ended, or the zero time.
func (s *Pollers) SweptAt() (last time.Time) {
	for p := range s.All() {
		if at := p.search.endedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// ClaimedAt returns when a claim of any poller last returned a task, or a time long ago.
func (s *Pollers) ClaimedAt() time.Time {
	last := int64(0)
	for p := range s.All() {
		last = max(last, p.lastClaim.Load())
	}
	return time.Unix(0, last)
}

// Sleep makes the pollers sweep seldom while the worker is asleep.
func (s *Pollers) Sleep(asleep bool) {
	s.asleep.Store(asleep)
	for p := range s.All() {
		p.search.asleep.Store(asleep)
	}
}

// Asleep reports whether the worker is asleep.
func (s *Pollers) Asleep() bool { return s.asleep.Load() }

// Waiting reports whether a poller waits for tasks, or there is none yet.
func (s *Pollers) Waiting() bool {
	none := true
	for p := range s.All() {
		if none = false; p.waits() {
			return true
		}
	}
	return none
}

// Notified makes the pollers of the queues in a notification sweep, or all pollers if the notification names no queue.
func (s *Pollers) Notified(notice string) {
	s.Answered()
	if notice == "" {
		s.SweepNow()
	}
	for queue := range strings.FieldsSeq(notice) {
		if p := s.Of(queue); p != nil {
			p.SweepNow()
		} else {
			s.unknown(queue)
		}
	}
}

// Answered wakes the pollers that pause after a failure: the database has answered.
func (s *Pollers) Answered() {
	for p := range s.All() {
		retry.Signal(p.outage.woken)
		retry.Signal(p.Sweeper.outage.woken)
	}
}

// endOutage records that the database answers, and reports whether a poller or the sweeper had no answer before.
func (s *Pollers) endOutage() (was bool) {
	for p := range s.All() {
		was = p.outage.away.Swap(false) || was
		was = p.Sweeper.outage.away.Swap(false) || was
	}
	return was
}

// SweepNow makes all pollers sweep soon.
func (s *Pollers) SweepNow() {
	for p := range s.All() {
		p.SweepNow()
	}
}

// PoliciesChanged makes all pollers use the policies that are in effect now.
func (s *Pollers) PoliciesChanged() {
	for p := range s.All() {
		p.lanes.Retime()
		p.SweepNow()
	}
}

// Freed notifies the pollers of limits with freed permits. A kind's limit may hold back lanes of any
// queue.
func (s *Pollers) Freed(limits []string) {
	for p := range s.All() {
		p.Freed(limits)
	}
}

// WakeWaiting wakes the pollers that wait for room for more tasks.
func (s *Pollers) WakeWaiting() {
	for p := range s.All() {
		p.Budget.Wake()
	}
}
