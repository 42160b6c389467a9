package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

var (
	// ErrNoSlot is returned by a claim that has to wait for a claim slot.
	ErrNoSlot = errors.New("other workers have the claim slots of the queue")
	// errHoldsSlot is wrapped by the error of a transaction whose connection may
	// still hold a claim slot.
	errHoldsSlot = errors.New("in a claim slot")
)

// SlotName returns the number that identifies the claim slots of those who claim
// tasks of the same kinds from a queue. Other claims do not step over their rows,
// and need not wait for them.
func (s *Store) SlotName(queue string, kinds []string) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q", s.tables.Schema, s.tables.Prefix, queue)
	for _, kind := range kinds {
		_, _ = fmt.Fprintf(h, " %q", kind)
	}
	return int64(h.Sum64()>>3)<<1 | 1<<61
}

// inSlot runs fn in a claim slot, on an engine where the connection takes it.
// The lock outlives the transaction, so the connection is not used again after
// an error. The slot is free before the commit, whose rows the next claim may
// still find locked.
func (s *Store) inSlot(ctx context.Context, x runner, slot int64, fn func() error) error {
	if slot == 0 || s.noSlots.Load() {
		return fn()
	}
	take := s.fixed("take slot", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.TakeClaimSlot(server) })
	numbers, err := int64s(ctx, x, take, statements.Values{"slot": slot}, nil)
	if err != nil && s.server.Classify(err) == dialect.Other && ctx.Err() == nil {
		s.noSlots.Store(true) // as on some clusters
		return fn()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errHoldsSlot, err)
	}
	if len(numbers) == 0 || numbers[0] == 0 {
		return ErrNoSlot
	}
	if err := fn(); err != nil {
		return fmt.Errorf("%w: %w", errHoldsSlot, err)
	}
	free := s.fixed("free slot", func(server dialect.Server, _ dialect.Tables) statements.Stmt {
		return statements.ReleaseClaimSlot(server)
	})
	if _, err := x.exec(ctx, free, statements.Values{"slot": slot, "number": numbers[0]}, nil); err != nil {
		return fmt.Errorf("%w: %w", errHoldsSlot, err)
	}
	return nil
}
