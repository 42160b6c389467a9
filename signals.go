package falldue

import (
	"strings"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// signals wakes the pollers of a worker. The pollers are by the names of their
// queues.
type signals map[string]*poller

// hint notifies the poller of a queue of a task in a lane that falls due after
// wait. It reports whether there is one that runs such tasks.
func (s signals) hint(queue string, at store.Lane, wait time.Duration) bool {
	p := s[queue]
	return p != nil && p.hint(at, wait)
}

// sweptAt returns when the last sweep of any poller ended, or the zero time.
func (s signals) sweptAt() (last time.Time) {
	for _, p := range s {
		if at := p.sweeper.endedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// sleep makes the pollers of a worker that is asleep sweep seldom.
func (s signals) sleep(asleep bool) {
	for _, p := range s {
		p.sweeper.asleep.Store(asleep)
	}
}

// wait reports whether a poller waits for tasks.
func (s signals) wait() bool {
	for _, p := range s {
		if p.waits() {
			return true
		}
	}
	return false
}

// noticed makes the pollers of the queues that a notice names sweep, or all pollers
// if it names none.
func (s signals) noticed(notice string) {
	if notice == "" {
		s.sweepNow()
	}
	for queue := range strings.FieldsSeq(notice) {
		if p := s[queue]; p != nil {
			p.sweepNow()
		}
	}
}

// sweepNow makes all pollers sweep soon.
func (s signals) sweepNow() {
	for _, p := range s {
		p.sweepNow()
	}
}

// policiesChanged makes all pollers go by the policies that hold now.
func (s signals) policiesChanged() {
	for _, p := range s {
		p.lanes.retime()
		p.sweepNow()
	}
}

// freed notifies the pollers of limits of which permits were freed. A kind's limit may
// hold back lanes of any queue.
func (s signals) freed(limits []string) {
	for _, p := range s {
		p.freed(limits)
	}
}

// wakeWaiting wakes the pollers that wait for room for more tasks.
func (s signals) wakeWaiting() {
	for _, p := range s {
		signal(p.budget.freed)
	}
}
