package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// Lane is what all tasks have in common that wait equally long.
type Lane struct {
	State    string
	Priority int
	Kind     string
	Policy   string
	Attempts int
}

// Delay is the delay of a policy, as claims compute it.
type Delay struct {
	Formula sqlgen.Formula
	text    string
}

// NewDelay returns the delay that a formula gives.
func NewDelay(f sqlgen.Formula) *Delay { return &Delay{f, f.String()} }

// Source is a lane to claim from.
type Source struct {
	Lane
	Delay *Delay
	// Since is a moment before which the lane holds nothing, in microseconds
	// since 1970.
	Since int64
}

// formula returns the formula that holds in the lane, nil where there is no
// delay: whatever a policy says, the first attempt has none, and its claims need
// not compute one.
func (w Source) formula() *sqlgen.Formula {
	if w.State == statements.StateSnoozed || w.Attempts < 1 {
		return nil
	}
	return &w.Delay.Formula
}

// Claim is a row as a worker took it.
type Claim struct {
	ID, Fence   int64
	Place       int // of its lane among the sources, from 1
	Attempts    int // this execution included
	MaxAttempts int // 0: the policy's
	Was         Lane
	Previous    string // the worker whose lease had run out, or ""
	Payload     []byte

	// In microseconds since 1970: the anchor before the claim, the start of the
	// first attempt, the creation, and the claim.
	Anchor, First, Created, Now int64
}

// scanClaim reads a row that a claim returns.
func scanClaim(r row, sources []Source) (*Claim, error) {
	var numbers [8]int64
	for i := range numbers {
		n, err := r.int(i)
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	place := int(numbers[0])
	c := &Claim{
		ID: numbers[1], Fence: numbers[2], Place: place, MaxAttempts: int(numbers[3]), Anchor: max(numbers[4], -1<<62), First: numbers[5], Created: numbers[6],
		Now: numbers[7], Was: sources[place-1].Lane, Previous: r.text(8), Payload: r.bytes(9),
	}
	c.Attempts = min(c.Was.Attempts, 1<<31-2) + 1
	return c, nil
}

// ClaimParams says what to claim.
type ClaimParams struct {
	Queue, Worker string
	Lease         time.Duration
	Limit         int
	Slot          int64    // the claim slots to take one of, 0 for none: see [SlotName]
	Sources       []Source // in the order in which to empty them
}

// Claim takes due tasks for a worker. It returns [ErrNoSlot] where others have
// the claim slots.
func (s *Store) Claim(ctx context.Context, p ClaimParams) (claims []*Claim, err error) {
	if !s.server.Caps.SkipLocked {
		p.Slot = 0
	}
	if s.server.Caps.Lateral && s.server.Caps.UpdateReturning {
		err = s.Retry(ctx, func() (err error) {
			claims, err = s.claimAtOnce(ctx, p)
			return err
		})
		return claims, err
	}
	err = s.inTx(ctx, func(x runner) error {
		return s.inSlot(ctx, x, p.Slot, func() error {
			claims, err = s.claimByLane(ctx, x, p)
			return err
		})
	})
	if err != nil {
		return nil, err // the commit may have failed: nothing is this worker's for sure
	}
	return claims, nil
}

// claimKey is what the text of a claim depends on.
type claimKey struct {
	formulas string // numbers of the delays
	slot     bool
}

// claimAtOnce claims by a single statement.
func (s *Store) claimAtOnce(ctx context.Context, p ClaimParams) ([]*Claim, error) {
	delays := delaysOf(p.Sources)
	lanes := make([]statements.Row, len(p.Sources))
	for i, w := range p.Sources {
		formula := int64(-1)
		if w.formula() != nil {
			formula = int64(slices.IndexFunc(delays, func(d *Delay) bool { return d.text == w.Delay.text }))
		}
		lanes[i] = statements.Row{w.State, int64(w.Priority), w.Kind, w.Policy, int64(w.Attempts), w.Since, formula}
	}
	stmt := s.stmt(stmtKey{name: "claim", variant: claimKey{s.numbersOf(delays), p.Slot != 0}}, func() statements.Stmt {
		params := statements.ClaimParams{Tables: s.tables, InTurn: p.Slot != 0}
		for _, d := range delays {
			params.Formulas = append(params.Formulas, d.Formula)
		}
		return statements.Claim(s.server, params)
	})
	values := statements.Values{
		"queue": p.Queue, "worker": p.Worker, "lease": p.Lease.Microseconds(), "limit": p.Limit, "turn": p.Slot,
	}
	var claims []*Claim
	err := s.once(ctx, func(x runner) error {
		return x.query(ctx, stmt, values, lanes, func(r row) error {
			if place, err := r.int(0); err != nil || place == 0 {
				return cmp.Or(err, ErrNoSlot)
			}
			c, err := scanClaim(r, p.Sources)
			claims = append(claims, c)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	// UPDATE returns its rows in no order.
	slices.SortFunc(claims, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Anchor, b.Anchor), cmp.Compare(a.ID, b.ID))
	})
	return claims, nil
}

// delaysOf lists the different delays of sources in the order of their texts, so
// that their statement is the same from claim to claim.
func delaysOf(sources []Source) (list []*Delay) {
	for _, w := range sources {
		if w.formula() == nil {
			continue
		}
		at, found := slices.BinarySearchFunc(list, w.Delay, func(a, b *Delay) int { return cmp.Compare(a.text, b.text) })
		if !found {
			list = slices.Insert(list, at, w.Delay)
		}
	}
	return list
}

// numbersOf returns the numbers of delays, four bytes each: equal for the same
// delays, and different for others.
func (s *Store) numbersOf(delays []*Delay) string {
	if len(delays) == 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.delays) >= maxMade {
		clear(s.delays)
		clear(s.made) // which go by the numbers
	}
	numbers := make([]byte, 0, 4*len(delays))
	for _, d := range delays {
		n, ok := s.delays[d.text]
		if !ok {
			n = uint32(len(s.delays))
			s.delays[d.text] = n
		}
		numbers = binary.LittleEndian.AppendUint32(numbers, n)
	}
	return string(numbers)
}

// claimByLane claims by a statement a lane and one that takes what was found, in
// a transaction.
func (s *Store) claimByLane(ctx context.Context, x runner, p ClaimParams) ([]*Claim, error) {
	var found []*Claim
	for i, w := range p.Sources {
		if len(found) == p.Limit {
			break
		}
		values := statements.Values{
			"queue": p.Queue, "state": w.State, "priority": w.Priority, "kind": w.Kind, "policy": w.Policy, "attempts": w.Attempts,
			"since": w.Since, "limit": p.Limit - len(found),
		}
		err := x.query(ctx, s.claimLane(w), values, nil, func(r row) error {
			c, err := scanClaim(r, p.Sources[i:])
			if err != nil {
				return err
			}
			c.Place += i
			found = append(found, c)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	fences := make([]statements.Row, len(found))
	for i, c := range found {
		fences[i] = statements.Row{c.ID, c.Fence}
		c.Fence = statements.NextFence(c.Fence)
	}
	values := statements.Values{"worker": p.Worker, "lease": p.Lease.Microseconds()}
	result, err := x.exec(ctx, s.batch("take", len(found), statements.Take), values, fences)
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); err != nil || n == int64(len(found)) {
		return found, err
	}
	// Rows were not locked after all, and others were faster.
	for i := range fences {
		fences[i] = statements.Row{found[i].ID, found[i].Fence}
	}
	owned, err := s.owned(ctx, x, p.Worker, fences, false)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(c *Claim) bool { return !owned[c.ID] }), nil
}

// claimLane is the statement that finds the due tasks of a lane.
func (s *Store) claimLane(w Source) statements.Stmt {
	key := stmtKey{name: "claim lane"}
	if w.formula() != nil {
		key.variant = claimKey{formulas: s.numbersOf([]*Delay{w.Delay})}
	}
	return s.stmt(key, func() statements.Stmt { return statements.ClaimLane(s.server, s.tables, w.formula()) })
}

// owned returns the ids of the claims that worker still holds. With lock it
// locks their rows, and leaves out those that somebody else has locked where the
// engine can.
func (s *Store) owned(ctx context.Context, x runner, worker string, fences []statements.Row, lock bool) (map[int64]bool, error) {
	room := s.room(len(fences))
	stmt := s.stmt(stmtKey{"owned", room, lock}, func() statements.Stmt { return statements.Owned(s.server, s.tables, room, lock) })
	ids, err := int64s(ctx, x, stmt, statements.Values{"worker": worker}, fences)
	return setOf(ids), err
}
