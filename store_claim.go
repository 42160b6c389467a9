package falldue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// lane is what all tasks share that wait equally long.
type lane struct {
	state    string
	priority int
	kind     string
	policy   string
	attempts int
}

// want is a lane to claim from.
type want struct {
	lane
	rule  *rule
	since int64 // the lane holds nothing before, in microseconds since 1970
}

// formula is the delay that holds in the lane, nil for none: whatever a policy
// says, the first attempt has no delay, and its claims need not reckon one.
func (w want) formula() *sqlgen.Formula {
	if w.state == statements.StateSnoozed || w.attempts < 1 {
		return nil
	}
	return &w.rule.delay
}

// claim is a row as a worker took it.
type claim struct {
	id, fence   int64
	place       int // of its lane among those that were claimed from, from 1
	attempts    int // this execution included
	maxAttempts int // 0: the policy's
	was         lane
	previous    string // the worker whose lease had run out, or ""
	payload     []byte

	// In microseconds since 1970: the anchor before the claim, the start of the
	// first attempt, the creation, and the claim.
	anchor, first, created, now int64
}

// claimOf reads a row that a claim returns.
func claimOf(row cells, wants []want) (*claim, error) {
	var numbers [8]int64
	for i := range numbers {
		n, err := row.int(i)
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	place := int(numbers[0])
	c := &claim{
		id: numbers[1], fence: numbers[2], place: place, maxAttempts: int(numbers[3]), anchor: max(numbers[4], -1<<62), first: numbers[5], created: numbers[6],
		now: numbers[7], was: wants[place-1].lane, previous: row.text(8), payload: row.bytes(9),
	}
	c.attempts = min(c.was.attempts, 1<<31-2) + 1
	return c, nil
}

func micros(us int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(min(us, most), -most)) * time.Microsecond
}

// claimParams say what to claim.
type claimParams struct {
	queue, worker string
	lease         time.Duration
	limit         int
	turn          int64  // the turns to take one of, 0 for none: see statements.Turn
	wants         []want // lanes, in the order in which to empty them
}

// claim takes due tasks for a worker. It returns errNoTurn where others have the
// turns.
func (s *store) claim(ctx context.Context, p claimParams) (got []*claim, err error) {
	if !statements.HasClaimSlots(s.server) {
		p.turn = 0
	}
	if statements.ClaimsAtOnce(s.server) {
		err = s.retry(ctx, func() (err error) {
			got, err = s.claimAtOnce(ctx, p)
			return err
		})
		return got, err
	}
	err = s.inTx(ctx, func(x execer) (err error) {
		claimLanes := func() error {
			got, err = s.claimByLane(ctx, x, p)
			return err
		}
		if p.turn == 0 || s.noTurns.Load() {
			return claimLanes()
		}
		return s.inTurn(ctx, x, p.turn, claimLanes)
	})
	if err != nil {
		return nil, err // the commit may have failed: nothing is this worker's for sure
	}
	return got, nil
}

func (s *store) claimAtOnce(ctx context.Context, p claimParams) ([]*claim, error) {
	lanes := make([]statements.Row, len(p.wants))
	formulas, name := formulasOf(p.wants)
	for i, w := range p.wants {
		formula := int64(-1)
		if w.formula() != nil {
			formula = int64(slices.IndexFunc(formulas, func(r *rule) bool { return r.text == w.rule.text }))
		}
		lanes[i] = statements.Row{w.state, int64(w.priority), w.kind, w.policy, int64(w.attempts), w.since, formula}
	}
	if p.turn != 0 {
		name += "\nin turn"
	}
	stmt := s.stmt(name, 0, func(int) statements.Stmt {
		params := statements.ClaimParams{Tables: s.tables, InSlot: p.turn != 0}
		for _, r := range formulas {
			params.Formulas = append(params.Formulas, r.delay)
		}
		return statements.Claim(s.server, params)
	})
	args := stmt.Bind(statements.Values{
		"queue": p.queue, "worker": p.worker, "lease": p.lease.Microseconds(), "limit": p.limit, "slot": p.turn,
	}, lanes)
	var got []*claim
	err := s.once(ctx, stmt.SQL, args, func(row cells) error {
		if place, err := row.int(0); err != nil || place == 0 {
			return cmp.Or(err, errNoTurn)
		}
		c, err := claimOf(row, p.wants)
		got = append(got, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	// UPDATE returns its rows in no order.
	slices.SortFunc(got, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.anchor, b.anchor), cmp.Compare(a.id, b.id))
	})
	return got, nil
}

// formulasOf lists the different delays of lanes by their text, so that their
// statement is the same from claim to claim, and names that statement.
func formulasOf(wants []want) (list []*rule, name string) {
	for _, w := range wants {
		if w.formula() == nil {
			continue
		}
		at, found := slices.BinarySearchFunc(list, w.rule, func(a, b *rule) int { return cmp.Compare(a.text, b.text) })
		if !found {
			list = slices.Insert(list, at, w.rule)
		}
	}
	name = "claim"
	for _, r := range list {
		name += "\n" + r.text
	}
	return list, name
}

func (s *store) claimByLane(ctx context.Context, x execer, p claimParams) ([]*claim, error) {
	var found []*claim
	for i, w := range p.wants {
		if len(found) == p.limit {
			break
		}
		name := "claim lane"
		if w.formula() != nil {
			name += "\n" + w.rule.text
		}
		stmt := s.stmt(name, 0, func(int) statements.Stmt { return statements.ClaimLane(s.server, s.tables, w.formula()) })
		args := stmt.Bind(statements.Values{
			"queue": p.queue, "state": w.state, "priority": w.priority, "kind": w.kind, "policy": w.policy, "attempts": w.attempts,
			"since": w.since, "limit": p.limit - len(found),
		}, nil)
		err := x.query(ctx, stmt.SQL, args, func(row cells) error {
			c, err := claimOf(row, p.wants[i:])
			if err != nil {
				return err
			}
			c.place += i
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
		fences[i] = statements.Row{c.id, c.fence}
		c.fence = statements.NextFence(c.fence)
	}
	take := s.rowStmt("take", len(found), statements.Take)
	res, err := x.exec(ctx, take.SQL, take.Bind(statements.Values{"worker": p.worker, "lease": p.lease.Microseconds()}, fences))
	if err != nil {
		return nil, err
	}
	if n, err := res.RowsAffected(); err != nil || n == int64(len(found)) {
		return found, err
	}
	// Rows were not locked after all, and others were faster.
	for i := range fences {
		fences[i] = statements.Row{found[i].id, found[i].fence}
	}
	mine, err := s.owned(ctx, x, p.worker, fences, false)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(c *claim) bool { return !mine[c.id] }), nil
}

// owned tells which of the claims worker still holds.
func (s *store) owned(ctx context.Context, x execer, worker string, fences []statements.Row, lock bool) (map[int64]bool, error) {
	name := "owned"
	if lock {
		name = "owned, locked"
	}
	stmt := s.stmt(name, len(fences), func(room int) statements.Stmt { return statements.Owned(s.server, s.tables, room, lock) })
	ids, err := selectInt64s(ctx, x, stmt.SQL, stmt.Bind(statements.Values{"worker": worker}, fences))
	if err != nil {
		return nil, err
	}
	return setOf(ids), nil
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
