package falldue

import (
	"slices"
	"sync"
	"sync/atomic"
)

// SubscribeOptions select the events of a [Subscription]. The zero value selects all of them.
type SubscribeOptions struct {
	// Kinds are the names of kinds, and select the events of their tasks. Defaults to all kinds.
	Kinds []string
	// Outcomes are the outcomes of the events. [OutcomeNone] stands for the start of a run. Defaults to all.
	Outcomes []Outcome
	// Buffer is how many events can wait to be received. Further events are dropped. A number below 1 means the default,
	// 1,000.
	Buffer int
}

// defaultBuffer is the default of SubscribeOptions.Buffer.
const defaultBuffer = 1000

// Subscription receives the events of the worker in this process. [Queue.Subscribe] makes one. Workers do not wait for
// a Subscription: while its buffer is full, events are dropped and counted.
type Subscription struct {
	options SubscribeOptions
	leave   func(*Subscription)
	dropped atomic.Int64

	mu     sync.Mutex
	events chan Event
	closed bool
}

func newSubscription(o SubscribeOptions, leave func(*Subscription)) *Subscription {
	if o.Buffer < 1 {
		o.Buffer = defaultBuffer
	}
	o.Kinds, o.Outcomes = slices.Clone(o.Kinds), slices.Clone(o.Outcomes)
	return &Subscription{options: o, leave: leave, events: make(chan Event, o.Buffer)}
}

// Events returns the channel of the events, in the order in which they happened. Close
// closes it.
func (s *Subscription) Events() <-chan Event { return s.events }

// Dropped returns how many events have been dropped because the buffer was full.
func (s *Subscription) Dropped() int64 { return s.dropped.Load() }

// Close ends the subscription and closes its channel. Events already in the channel can still be received. Close may be
// called more than once.
func (s *Subscription) Close() {
	s.leave(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.events)
	}
}

// offer puts an event into the buffer if it is wanted.
func (s *Subscription) offer(e Event) {
	if len(s.options.Kinds) > 0 && !slices.Contains(s.options.Kinds, e.Kind) || len(s.options.Outcomes) > 0 && !slices.Contains(s.options.Outcomes, e.Outcome) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	select {
	case s.events <- e:
	default:
		s.dropped.Add(1)
	}
}
