package lease

import (
	"maps"
	"slices"
	"sync"

	"github.com/falldue/falldue/internal/outcome"
)

// Set has every lease of a worker from the claim until the run is settled or lost.
type Set struct {
	mu     sync.Mutex
	leases map[*Lease]struct{}
}

// NewSet returns a set without leases.
func NewSet() *Set { return &Set{leases: map[*Lease]struct{}{}} }

// Add adds leases of new claims.
func (s *Set) Add(leases ...*Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		s.leases[l] = struct{}{}
	}
}

// Drop removes leases of claims that are settled or lost.
func (s *Set) Drop(leases ...*Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		delete(s.leases, l)
	}
}

// Replace makes next the lease of l's claim, and l a lost lease.
func (s *Set) Replace(l, next *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.passTo(next)
	if _, has := s.leases[l]; has {
		delete(s.leases, l)
		s.leases[next] = struct{}{}
	}
}

// Count returns the number of leases.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

// Sorted returns the leases in the order of their tasks' IDs.
func (s *Set) Sorted() []*Lease {
	list := s.list()
	slices.SortFunc(list, byTask)
	return list
}

// list returns the leases.
func (s *Set) list() []*Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leases))
}

// Has reports whether the claim of a lease is neither settled nor lost.
func (s *Set) Has(l *Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.leases[l]
	return has
}

// Cancelled ends the runs of cancelled tasks. fences has the highest fence to end, by task ID: a task
// may have been retried since its cancel.
func (s *Set) Cancelled(fences map[int64]int64) {
	for _, l := range s.list() {
		if fence, ok := fences[l.Claim.ID]; ok && l.Claim.Fence <= fence {
			l.loseBy(outcome.ErrCancelled)
		}
	}
}
