package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Hold says why tasks of a source were left.
type Hold int

// The reasons why tasks of a source may be left.
const (
	// Emptied: none is due.
	Emptied Hold = iota
	// More: the claim was to take no more, or did not come to them.
	More
	// Saturated: the limit Name admits no more.
	Saturated
	// Outrun: another claim took the permit.
	Outrun
)

// Rest is what a claim under limits left of a source.
type Rest struct {
	Hold Hold
	Name string        // of the limit
	Wait time.Duration // until the limit admits another task, or 0 if nobody knows
}

// Held reports whether a limit has left tasks of the source.
func (r Rest) Held() bool { return r.Hold == Saturated || r.Hold == Outrun }

// Limited is the result of a claim under limits.
type Limited struct {
	Claims []*Claim
	Rests  []Rest   // of each source
	Open   []string // the limits that admit more tasks
}

// ClaimLimited claims due tasks for a worker as [Store.Claim] does, from sources of which
// any have limits, in one transaction.
func (s *Store) ClaimLimited(ctx context.Context, p ClaimParams) (Limited, error) {
	return inTx(ctx, s, func(x runner) (Limited, error) {
		quotas, err := s.quotas(ctx, x, p)
		if err != nil {
			return Limited{}, err
		}
		found, rests, err := s.find(ctx, x, p, quotas)
		if err != nil {
			return Limited{}, err
		}
		claims, err := s.takeLimited(ctx, x, p, found, quotas, rests)
		result := Limited{Claims: claims, Rests: rests}
		for _, q := range quotas {
			if q.room > 0 && q.holder == nil {
				result.Open = append(result.Open, q.Name)
			}
		}
		return result, err
	})
}

// quotas reads what the limits of sources admit. It makes the permits that are missing
// and that this claim may need.
func (s *Store) quotas(ctx context.Context, x runner, p ClaimParams) (map[string]*quota, error) {
	quotas, err := s.readQuotas(ctx, x, p.Sources)
	if err != nil {
		return nil, err
	}
	var missing []statements.NewPermit
	for name, q := range quotas {
		for _, n := range q.missing[:max(min(len(q.missing), p.Limit-len(q.free)), 0)] {
			missing = append(missing, statements.NewPermit{Name: name, N: n})
		}
	}
	if len(missing) == 0 {
		return quotas, nil
	}
	slices.SortFunc(missing, func(a, b statements.NewPermit) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.N, b.N)) })
	err = inBatches(s, missing, func(list []statements.NewPermit) error {
		rows := statements.NewPermitColumns.Rows(len(list), func(i int) *statements.NewPermit { return &list[i] })
		_, err := x.exec(ctx, s.batch("make permits", len(list), statements.MakePermits), nil, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	quotas, err = s.readQuotas(ctx, x, p.Sources)
	for _, q := range quotas {
		if len(q.free) < min(p.Limit, q.permits()) {
			q.room = min(q.room, len(q.free)) // others have taken what was made
		}
	}
	return quotas, err
}

func (s *Store) readQuotas(ctx context.Context, x runner, sources []Source) (map[string]*quota, error) {
	limits := map[string]Limit{}
	var names []string
	for _, from := range sources {
		for _, l := range from.Limits {
			if _, known := limits[l.Name]; !known {
				limits[l.Name], names = l, append(names, l.Name)
			}
		}
	}
	permits, err := s.readPermits(ctx, x, names)
	if err != nil {
		return nil, err
	}
	quotas := make(map[string]*quota, len(names))
	for _, name := range names {
		quotas[name] = newQuota(limits[name], permits[name])
	}
	return quotas, nil
}

// readPermits returns the permits of limits, by the limits' names.
func (s *Store) readPermits(ctx context.Context, x runner, names []string) (map[string][]*statements.Permit, error) {
	permits := make(map[string][]*statements.Permit, len(names))
	for list := range slices.Chunk(names, MaxBatch) {
		rows := statements.LimitColumns.Rows(len(list), func(i int) *string { return &list[i] })
		err := x.query(ctx, s.batch("permits", len(list), statements.Permits), nil, rows, func(r row) error {
			p := &statements.Permit{}
			err := statements.PermitColumns.Scan(r, p)
			permits[p.Name] = append(permits[p.Name], p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return permits, nil
}

// roomOf returns how many tasks the limits of a source admit, up to most, beside those that
// are reserved for the sources before it.
func roomOf(from Source, quotas map[string]*quota, most int) int {
	for _, l := range from.Limits {
		q := quotas[l.Name]
		most = min(most, q.room-q.reserved)
	}
	return max(most, 0)
}

// saturated returns the limit of a source that admits no task, or nil.
func saturated(from Source, quotas map[string]*quota) *quota {
	for _, l := range from.Limits {
		if q := quotas[l.Name]; q.room <= 0 {
			return q
		}
	}
	return nil
}

// wantedTasks says how many tasks to find in a source.
type wantedTasks struct{ source, room int }

// find finds due tasks that the limits of their sources admit, counts them there, and
// says what is left of each source. It looks into several sources with one statement, as
// long as they cannot find more together than their limits admit.
func (s *Store) find(ctx context.Context, x runner, p ClaimParams, quotas map[string]*quota) (found []*Claim, rests []Rest, err error) {
	emptied := make([]bool, len(p.Sources))
	for next := 0; next < len(p.Sources); {
		var wanted []wantedTasks
		wanted, next = s.plan(p, next, p.Limit-len(found), quotas)
		if len(wanted) == 0 {
			break
		}
		list, err := s.findWanted(ctx, x, p, wanted, quotas)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, list...)
		count := map[int]int{}
		for _, c := range list {
			count[c.Place-1]++
		}
		for _, w := range wanted {
			emptied[w.source] = count[w.source] < w.room
			for _, l := range p.Sources[w.source].Limits {
				q := quotas[l.Name]
				q.room, q.reserved = q.room-count[w.source], q.reserved-w.room
			}
		}
	}
	rests = make([]Rest, len(p.Sources))
	for i, from := range p.Sources {
		q := saturated(from, quotas)
		if next := sequenceOf(from, quotas); q == nil && next != nil && next.holder != nil {
			q = next // the task that comes next is in another lane
		}
		switch {
		case emptied[i] && (q == nil || q.holder == nil):
			rests[i] = Rest{Hold: Emptied}
		case q != nil:
			rests[i] = Rest{Hold: Saturated, Name: q.Name, Wait: q.wait}
		default:
			rests[i] = Rest{Hold: More}
		}
	}
	return found, rests, nil
}

// plan returns into which sources to look with the next statement, beginning with next,
// for up to most tasks, and the source after them. It reserves what they may find.
func (s *Store) plan(p ClaimParams, next, most int, quotas map[string]*quota) (wanted []wantedTasks, after int) {
	for ; next < len(p.Sources) && most > 0; next++ {
		from := p.Sources[next]
		room := roomOf(from, quotas, most)
		switch {
		case len(wanted) > 0 && !s.findsTogether(p.Sources[wanted[0].source], from):
			return wanted, next
		case room == 0 && saturated(from, quotas) == nil: // others may leave some of what is reserved
			return wanted, next
		case room == 0:
			continue
		}
		wanted, most = append(wanted, wantedTasks{next, room}), most-room
		for _, l := range from.Limits {
			quotas[l.Name].reserved += room
		}
	}
	return wanted, next
}

// findsTogether reports whether one statement can look into two sources.
func (s *Store) findsTogether(a, b Source) bool {
	if Ordered(a.Limits) || Ordered(b.Limits) {
		return false
	}
	return statements.ClaimsAtOnce(s.server) || statements.UnitesLanes(s.server) && a.formula() == nil && b.formula() == nil
}

// findStmt returns the statement that finds due tasks in sources, with its values and its
// rows, and the sources.
func (s *Store) findStmt(p ClaimParams, wanted []wantedTasks) (stmt statements.Stmt, values statements.Values, rows []statements.Row, sources []Source) {
	sources = make([]Source, len(wanted))
	for i, w := range wanted {
		sources[i] = p.Sources[w.source]
	}
	delays := delaysOf(sources)
	lanes := wantedLanes(sources, delays)
	for i, w := range wanted {
		lanes[i].Room = w.room
	}
	rows = statements.RoomColumns.Rows(len(lanes), func(i int) *statements.WantedLane { return &lanes[i] })
	values = statements.Values{"queue": p.Queue}
	switch {
	case statements.ClaimsAtOnce(s.server):
		stmt = s.stmt(stmtKey{name: "find due", formulas: s.numbersOf(delays)}, func() statements.Stmt {
			return statements.FindDue(s.server, claimParams(s.tables, delays, false))
		})
	case len(wanted) > 1:
		stmt = s.batch("unite lanes", len(wanted), statements.UniteLanes)
	default:
		stmt, values, rows = s.claimLane(sources[0]), laneValues(p.Queue, sources[0], wanted[0].room), nil
	}
	return stmt, values, rows, sources
}

// findIn finds due tasks in sources, in the order of these and of their anchors.
func (s *Store) findIn(ctx context.Context, x runner, p ClaimParams, wanted []wantedTasks) (found []*Claim, err error) {
	stmt, values, rows, sources := s.findStmt(p, wanted)
	var scanner claimScanner
	err = x.query(ctx, stmt, values, rows, func(r row) error {
		c, err := scanner.scan(r, sources)
		if err == nil {
			c.Place = wanted[c.Place-1].source + 1
			found = append(found, c)
		}
		return err
	})
	slices.SortStableFunc(found, func(a, b *Claim) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Anchor, b.Anchor)) })
	return found, err
}
