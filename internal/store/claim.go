package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// Delay is the delay of a policy, with the text of its formula.
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
	// Since is the anchor from which to search, in microseconds since 1970. All tasks
	// before it have been claimed.
	Since int64
	// Room is how many tasks a claim without limits may take from the lane, or 0 for as many as it may take in all.
	Room int
	// More reports that the last claim from the lane left due tasks there.
	More bool
	// Weight is the weight of the lane's turn in shares of a claim. 0 is 1.
	Weight int
	// Running is the state of the tasks while they run: open, or snoozed if they are
	// due as soon as their leases end, without a delay.
	Running string
	// MaxAttempts is the policy's limit on attempts; 0 is no limit.
	MaxAttempts int
	// Limits are the limits of the lane's tasks. [Store.ClaimLimited] and [Store.ClaimKeys] apply
	// them, [Store.Claim] does not.
	Limits []Limit
	// LeaveExpired makes [Store.ClaimLimited] leave tasks that have missed a time of their own, if the lane has a rate: they
	// would use up the rate, and never start.
	LeaveExpired bool
}

// maxAttempts is the greatest number of attempts that a row can hold.
const maxAttempts = 1<<31 - 1

// most returns how many attempts a task has in all, if own is its own limit or 0.
func (l Source) most(own int) int {
	if own > 0 {
		return own
	}
	return cmp.Or(l.MaxAttempts, maxAttempts)
}

// formula returns the formula of the lane's delay, or nil if there is no delay.
func (l Source) formula() *sqlgen.Formula {
	if !l.Delayed() {
		return nil
	}
	return &l.Delay.Formula
}

// Claim is a task that a worker has claimed, with the claim's fence. First and Created always
// have a value.
type Claim struct {
	statements.Claimed
	Attempts int  // the number of this attempt
	From     Lane // the lane from which it was claimed
	// Exhausted reports whether no attempt was left. The claim has not counted an attempt then,
	// and Attempts is the number of the last one.
	Exhausted bool
	Limits    []Limit // its source's limits
	// HeldUntil is the last time at which limits are known to have held back tasks of the lane, in
	// microseconds since 1970, or 0. Package claim sets it.
	HeldUntil int64
	permits   []*statements.Permit // of running tasks, as the claim has taken them
}

// claimScanner reads the rows that claims return. It allocates a few claims together, and not
// all claims of a statement: an allocation stays in memory until all its claims' handlers end.
type claimScanner struct{ room []Claim }

// claimRoom is the number of claims in one allocation.
const claimRoom = 8

func (s *claimScanner) next() *Claim {
	if len(s.room) == 0 {
		s.room = make([]Claim, claimRoom)
	}
	c := &s.room[0]
	s.room = s.room[1:]
	return c
}

// scan reads a row that a claim from sources returns.
func (s *claimScanner) scan(r row, sources []Source) (*Claim, error) {
	c, err := s.read(r)
	if err == nil && c.Place > 0 {
		c.comeFrom(sources[c.Place-1])
	}
	return c, err
}

// read reads a row of a task of any source.
func (s *claimScanner) read(r row) (*Claim, error) {
	c := s.next()
	if err := statements.ClaimedColumns.Scan(r, &c.Claimed); err != nil {
		return nil, err
	}
	if !c.First.Valid {
		c.First.V = c.Now
	}
	if !c.Created.Valid {
		c.Created.V = c.Anchor
	}
	c.Anchor = max(c.Anchor, -1<<62)
	return c, nil
}

// comeFrom sets the values that depend on the claim's source.
func (c *Claim) comeFrom(from Source) {
	c.From, c.Attempts, c.Limits = from.Lane, from.Attempts+1, from.Limits
	if c.Exhausted = from.Attempts >= from.most(c.MaxAttempts); c.Exhausted {
		c.Attempts = min(from.Attempts, maxAttempts)
	}
}

// ClaimParams are the parameters of a claim.
type ClaimParams struct {
	Queue, Worker string
	Lease         time.Duration
	Limit         int
	Slot          int64    // the claim slots to take one from, see [Store.SlotName]; 0 for none
	Sources       []Source // in the order in which to claim from them
	later         []Source // those for which a claim under limits reads no permits
}

// room returns how many tasks the claim may take from a source.
func (p ClaimParams) room(from Source) int { return min(cmp.Or(from.Room, p.Limit), p.Limit) }

// Claim claims due tasks for a worker and returns them in the order of the sources,
// and of one source in the order of their anchors. Its error is [ErrNoSlot] if other
// claims have all claim slots.
func (s *Store) Claim(ctx context.Context, p ClaimParams) ([]*Claim, error) {
	if !statements.HasClaimSlots(s.server) {
		p.Slot = 0
	}
	if statements.ClaimsAtOnce(s.server) {
		return once(ctx, s, func(x runner) ([]*Claim, error) { return s.claimAtOnce(ctx, x, p) })
	}
	return inTx(ctx, s, func(x runner) ([]*Claim, error) {
		release, err := s.takeSlot(ctx, x, p.Slot)
		if err != nil {
			return nil, err
		}
		claims, err := s.claimByLane(ctx, x, p)
		return claims, release(err)
	})
}

// claimStmt returns the single statement of a claim, with its values and its rows.
func (s *Store) claimStmt(p ClaimParams) (statements.Stmt, statements.Values, []statements.Row) {
	delays := delaysOf(p.Sources)
	wanted := wantedLanes(p.Sources, delays)
	for i, from := range p.Sources {
		wanted[i].Room = p.room(from)
	}
	lanes := statements.LaneColumns.Rows(len(wanted), func(i int) *statements.WantedLane { return &wanted[i] })
	stmt := s.stmt(stmtKey{name: "claim", formulas: s.numbersOf(delays), inSlot: p.Slot != 0}, func() statements.Stmt {
		return statements.Claim(s.server, claimParams(s.tables, delays, p.Slot != 0))
	})
	values := statements.Values{
		"queue": p.Queue, "worker": p.Worker, "lease": p.Lease.Microseconds(), "limit": p.Limit, "slot": p.Slot,
	}
	return stmt, values, lanes
}

// claimAtOnce claims with a single statement.
func (s *Store) claimAtOnce(ctx context.Context, x runner, p ClaimParams) ([]*Claim, error) {
	stmt, values, lanes := s.claimStmt(p)
	var claims []*Claim
	var scanner claimScanner
	err := x.query(ctx, stmt, values, lanes, func(r row) error {
		c, err := scanner.scan(r, p.Sources)
		if err != nil || c.Place == 0 {
			return cmp.Or(err, ErrNoSlot)
		}
		claims = append(claims, c)
		return nil
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

// wantedLanes returns sources as rows of a batch.
func wantedLanes(sources []Source, delays []*Delay) []statements.WantedLane {
	wanted := make([]statements.WantedLane, len(sources))
	for i, w := range sources {
		wanted[i] = statements.WantedLane{Lane: w.Lane, Since: w.Since, Formula: -1, Running: w.Running, Most: w.most(0)}
		if w.formula() != nil {
			wanted[i].Formula = int64(slices.IndexFunc(delays, func(d *Delay) bool { return d.text == w.Delay.text }))
		}
	}
	return wanted
}

// claimParams returns the parameters of a statement that claims from lanes with delays.
func claimParams(tables dialect.Tables, delays []*Delay, inSlot bool) statements.ClaimParams {
	params := statements.ClaimParams{Tables: tables, InSlot: inSlot}
	for _, d := range delays {
		params.Formulas = append(params.Formulas, d.Formula)
	}
	return params
}

// delaysOf lists the distinct delays of sources, in the order of their texts. Claims
// with the same delays then have the same statement.
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

// numbersOf returns a short key for a list of delays, four bytes for each. Two lists
// have the same key only if they have the same delays.
func (s *Store) numbersOf(delays []*Delay) string {
	if len(delays) == 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.delays) >= maxMade {
		clear(s.delays)
		clear(s.made) // its keys have these numbers
	}
	numbers := make([]byte, 0, 4*len(delays))
	for _, d := range delays {
		n, ok := s.delays[d.text]
		if !ok {
			n = s.nextDelay
			s.nextDelay++ // a number is never used again, since another goroutine may have it
			s.delays[d.text] = n
		}
		numbers = binary.LittleEndian.AppendUint32(numbers, n)
	}
	return string(numbers)
}

// claimByLane claims in a transaction, with statements that find due tasks, each in as many sources as
// possible, and one that takes all these tasks.
func (s *Store) claimByLane(ctx context.Context, x runner, p ClaimParams) ([]*Claim, error) {
	var found []*Claim
	for next := 0; next < len(p.Sources) && len(found) < p.Limit; {
		var wanted []wantedTasks
		for left := p.Limit - len(found); next < len(p.Sources) && left > 0; next++ {
			from := p.Sources[next]
			if len(wanted) > 0 && !s.findsTogether(p.Sources[wanted[0].source], from) {
				break
			}
			wanted = append(wanted, wantedTasks{source: next, room: min(p.room(from), left)})
			left -= wanted[len(wanted)-1].room
		}
		list, err := s.findIn(ctx, x, p, wanted)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return s.takeAll(ctx, x, p, found)
}

// takeAll claims tasks that were found in the same transaction, and returns those that it
// could claim.
func (s *Store) takeAll(ctx context.Context, x runner, p ClaimParams, found []*Claim) ([]*Claim, error) {
	if len(found) == 0 {
		return nil, nil
	}
	all := true
	for _, running := range []string{statements.StateOpen, statements.StateSnoozed} {
		for _, most := range []int{maxAttempts, 0} {
			some := slices.DeleteFunc(slices.Clone(found), func(c *Claim) bool {
				return p.Sources[c.Place-1].Running != running || c.Exhausted != (most == 0)
			})
			n, err := s.take(ctx, x, p, statements.Values{"running": running, "most": most}, some)
			if err != nil {
				return nil, err
			}
			all = all && n == len(some)
		}
	}
	if all {
		return found, nil
	}
	// The rows were not locked after all, and others have claimed some of them.
	owned, err := s.owned(ctx, x, p.Worker, keysOf(found), false)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(c *Claim) bool { return !owned[c.ID] }), nil
}

// take claims tasks with values of [statements.Take], and returns how many rows it
// changed.
func (s *Store) take(ctx context.Context, x runner, p ClaimParams, values statements.Values, found []*Claim) (int, error) {
	if len(found) == 0 {
		return 0, nil
	}
	fences := keysOf(found)
	for _, c := range found {
		c.Fence = statements.NextFence(c.Fence)
	}
	values["worker"], values["lease"] = p.Worker, p.Lease.Microseconds()
	result, err := x.exec(ctx, s.batch("take", len(found), statements.Take), values, fences)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// keysOf returns rows that identify claims.
func keysOf(claims []*Claim) []statements.Row {
	keys := make([]Key, len(claims))
	for i, c := range claims {
		keys[i] = Key{TaskID: c.ID, Fence: c.Fence}
	}
	return statements.FenceColumns.Rows(len(keys), func(i int) *Key { return &keys[i] })
}

// claimLane returns the statement that finds the due tasks of a lane.
func (s *Store) claimLane(w Source) statements.Stmt {
	key := stmtKey{name: "claim lane", formulas: s.formulaOf(w)}
	return s.stmt(key, func() statements.Stmt { return statements.ClaimLane(s.server, s.tables, w.formula()) })
}

// laneValues returns the values of [Store.claimLane], for up to limit tasks.
func laneValues(queue string, w Source, limit int) statements.Values {
	values := statements.Values{"queue": queue, "since": w.Since, "limit": limit}
	statements.SetLane(values, w.Lane)
	return values
}

// formulaOf returns the key of a source's delay, or "" if it has none.
func (s *Store) formulaOf(w Source) string {
	if w.formula() == nil {
		return ""
	}
	return s.numbersOf([]*Delay{w.Delay})
}

// owned returns the task ids of the claims that worker still owns. If lock is set, it locks
// the tasks' rows, and leaves out rows that another transaction has locked if the engine can
// skip them.
func (s *Store) owned(ctx context.Context, x runner, worker string, fences []statements.Row, lock bool) (map[int64]bool, error) {
	size := s.size(len(fences))
	stmt := s.stmt(stmtKey{name: "owned", size: size, lock: lock}, func() statements.Stmt { return statements.Owned(s.server, s.tables, size, lock) })
	ids, err := int64s(ctx, x, stmt, statements.Values{"worker": worker}, fences)
	return SetOf(ids), err
}
