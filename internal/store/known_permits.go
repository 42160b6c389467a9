package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// knownPermits are the permits that this store's claims had last, and that are free since these claims have ended.
// A claim that finds all permits of a limit here need not read them: with many keys, to read their permits takes as long
// as to find their tasks. Another worker may have taken a permit in the meantime. Its token differs then, and the claim
// does not get the permit.
type knownPermits struct {
	mu        sync.Mutex
	free      map[string]*freePermits // by limit
	readAgain time.Duration           // how often claims read the permits of a limit nevertheless
}

// freePermits are the known permits of a limit, without those that claims have taken since.
type freePermits struct {
	byID  map[int64]*statements.Permit
	freed time.Time // when the last of them became free
	read  time.Time // when the limit's permits were last read
}

const (
	// maxKnown is the greatest number of limits with known permits.
	maxKnown = 8 * MaxBatch
	// knownFor is how long permits are known. Permits that are not used are deleted later.
	knownFor = time.Minute
	// readAgain is how often claims read permits that are known: a release with a higher limit may have made more.
	readAgain = time.Second
)

func (k *knownPermits) begin() { k.free, k.readAgain = map[string]*freePermits{}, readAgain }

// knownFree returns all permits of a limit, or nil if a claim has to read them. While other workers take permits of the
// store's limits, claims read them all.
func (s *Store) knownFree(l Limit) []*statements.Permit {
	if s.rivals.recently() {
		return nil
	}
	return s.known.of(l)
}

// of returns all permits of a limit, or nil if it does not know each of them to be free.
func (k *knownPermits) of(l Limit) []*statements.Permit {
	if l.Form != Running {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	f, now := k.free[l.Name], time.Now()
	if f == nil || len(f.byID) < l.permits() || now.Sub(f.freed) > knownFor {
		return nil
	}
	if now.Sub(f.read) > k.readAgain {
		f.read = now
		return nil
	}
	return slices.Collect(maps.Values(f.byID))
}

// add records that permits are free.
func (k *knownPermits) add(permits []*statements.Permit, now time.Time) {
	for _, p := range permits {
		f := k.free[p.Name]
		if f == nil {
			for name := range k.free {
				if len(k.free) < maxKnown {
					break
				}
				delete(k.free, name)
			}
			f = &freePermits{byID: map[int64]*statements.Permit{}, read: now}
			k.free[p.Name] = f
		}
		f.byID[p.ID], f.freed = p, now
	}
}

// forget makes the next claim read the permits of a limit.
func (k *knownPermits) forget(limit string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.free, limit)
}

// remove records that a claim has tried to take permits.
func (k *knownPermits) remove(permits map[int64]*statements.Permit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, p := range permits {
		if f := k.free[p.Name]; f != nil {
			delete(f.byID, id)
		}
	}
}

// Ended records that claims of this store have ended, as they were settled. Later claims know that their permits are
// free.
func (s *Store) Ended(claims []*Claim) {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	now := time.Now()
	for _, c := range claims {
		s.known.add(c.permits, now)
	}
}
