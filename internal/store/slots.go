package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

var (
	// ErrNoSlot is returned by a claim if other claims have all claim slots.
	ErrNoSlot = errors.New("other workers hold all claim slots of the queue")
	// errHoldsSlot is wrapped by the error of a transaction whose connection may
	// still hold a claim slot.
	errHoldsSlot = errors.New("while holding a claim slot")
)

// SlotName returns a number that identifies the claim slots of the workers that claim
// tasks of the same kinds from a queue. Claims of other kinds lock other rows, and have
// other slots.
func (s *Store) SlotName(queue string, kinds []string) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q", s.tables.Schema, s.tables.Prefix, queue)
	for _, kind := range kinds {
		_, _ = fmt.Fprintf(h, " %q", kind)
	}
	return int64(h.Sum64()>>3)<<1 | 1<<61
}

// SlotHolders returns a text that names the holders of claim slots, or "" if they are free.
func (s *Store) SlotHolders(ctx context.Context, slot int64) (string, error) {
	var holders []string
	err := s.seldom(ctx, statements.ClaimSlotHolders(s.server), statements.Values{"slot": slot}, nil, func(r row) error {
		holders = append(holders, r.text(0))
		return nil
	})
	return strings.Join(holders, " "), err
}

// takeSlot takes a claim slot in a transaction, unless slot is 0. The caller calls
// release with the error of its work in the slot, and returns the result of release.
// A named lock outlives the transaction, so after an error the connection is not used
// again. Such a slot is free before the commit, when the next claim may still find the
// rows locked.
func (s *Store) takeSlot(ctx context.Context, x runner, slot int64) (release func(error) error, err error) {
	none := func(err error) error { return err }
	if slot == 0 || s.noSlots.Load() {
		return none, nil
	}
	take := s.fixed("take slot", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.TakeClaimSlot(server) })
	numbers, err := int64s(ctx, x, take, statements.Values{"slot": slot}, nil)
	if err != nil && s.server.Classify(err) == dialect.Other && ctx.Err() == nil {
		s.noSlots.Store(true) // as on some clusters
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHoldsSlot, err)
	}
	if len(numbers) == 0 || numbers[0] == 0 {
		return nil, ErrNoSlot
	}
	if s.server.Caps.Locks == dialect.AdvisoryLocks {
		return none, nil // the transaction holds the slot
	}
	return func(err error) error {
		if err == nil {
			free := s.fixed("free slot", func(server dialect.Server, _ dialect.Tables) statements.Stmt {
				return statements.ReleaseClaimSlot(server)
			})
			_, err = x.exec(ctx, free, statements.Values{"slot": slot, "number": numbers[0]}, nil)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errHoldsSlot, err)
		}
		return nil
	}, nil
}
