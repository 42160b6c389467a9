package store

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Limit is a limit on the tasks of a lane. Lanes may share it. It has permits, and a task
// is claimed together with one of each of its lane's limits.
type Limit struct {
	Name string
	Form LimitForm
	Most int           // how many permits it has
	Per  time.Duration // of a rate: how long each is taken
}

// LimitForm says what a limit limits, and thereby which permits are free.
type LimitForm int

// The forms of limits.
const (
	// Running limits how many tasks run at once: a permit is free when its claim no longer
	// lives.
	Running LimitForm = iota + 1
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

// Limited is the result of a claim under limits.
type Limited struct {
	Claims []*Claim
	Rests  []Rest   // of each source
	Open   []string // the limits that admit more tasks
}

// quota is what a limit admits while a claim is being made.
type quota struct {
	Limit
	room    int // how many more tasks
	wait    time.Duration
	free    []*statements.Permit
	missing []int // the numbers of permits that are not there yet
}

// newQuota decides which permits of a limit are free. It is decided from what was read
// without locks, and takes effect only if nobody has taken the permit meanwhile.
func newQuota(l Limit, permits []*statements.Permit) *quota {
	q, there, taken := &quota{Limit: l}, map[int]bool{}, 0
	for _, p := range permits {
		there[p.N] = true
		switch {
		case p.Live != 0:
			taken++
		case p.N < l.Most:
			q.free = append(q.free, p)
		}
	}
	for n := range l.Most {
		if !there[n] {
			q.missing = append(q.missing, n)
		}
	}
	// Claims that begin at the same time should not all try the same ones.
	rand.Shuffle(len(q.free), func(i, j int) { q.free[i], q.free[j] = q.free[j], q.free[i] })
	q.room = max(min(len(q.free), l.Most-taken), 0) // Most may have been higher
	return q
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
			if q.room > 0 {
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
	return s.readQuotas(ctx, x, p.Sources)
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
	quotas := make(map[string]*quota, len(names))
	for _, name := range names {
		quotas[name] = newQuota(limits[name], permits[name])
	}
	return quotas, nil
}

// roomOf returns how many tasks the limits of a source admit, and the limit that admits
// the fewest.
func roomOf(from Source, quotas map[string]*quota, most int) (room int, by *quota) {
	room = most
	for _, l := range from.Limits {
		if q := quotas[l.Name]; q.room < room {
			room, by = q.room, q
		}
	}
	return room, by
}

// find finds due tasks that the limits of their sources admit, counts them there, and
// says what is left of each source.
func (s *Store) find(ctx context.Context, x runner, p ClaimParams, quotas map[string]*quota) (found []*Claim, rests []Rest, err error) {
	rests = make([]Rest, len(p.Sources))
	if statements.ClaimsAtOnce(s.server) {
		found, err = s.findAtOnce(ctx, x, p, quotas, rests)
		return found, rests, err
	}
	for i, from := range p.Sources {
		room, by := roomOf(from, quotas, p.Limit-len(found))
		n := 0
		if room > 0 {
			err := s.findInLane(ctx, x, p, i, room, func(c *Claim) {
				found, n = append(found, c), n+1
			})
			if err != nil {
				return nil, nil, err
			}
		}
		rests[i] = restOf(n, room, by)
		from.count(n, quotas)
	}
	return found, rests, nil
}

// restOf says what is left of a source in which a claim found n of up to room tasks, as
// many as the limit by admits or, if by is nil, as the claim was to take.
func restOf(n, room int, by *quota) Rest {
	switch {
	case n < room:
		return Rest{Hold: Emptied}
	case by == nil:
		return Rest{Hold: More}
	}
	return Rest{Hold: Saturated, Name: by.Name, Wait: by.wait}
}

// count counts n tasks of the source.
func (l Source) count(n int, quotas map[string]*quota) {
	for _, limit := range l.Limits {
		quotas[limit.Name].room -= n
	}
}

// findInLane finds up to room due tasks of source i.
func (s *Store) findInLane(ctx context.Context, x runner, p ClaimParams, i, room int, f func(*Claim)) error {
	from := p.Sources[i]
	values := statements.Values{"queue": p.Queue, "since": from.Since, "limit": room}
	statements.SetLane(values, from.Lane)
	return x.query(ctx, s.claimLane(from), values, nil, func(r row) error {
		c, err := scanClaim(r, p.Sources[i:])
		if err == nil {
			c.Place += i
			f(c)
		}
		return err
	})
}

// findAtOnce is find in one statement. Sources that share a limit may have more tasks than
// that admits. The statement finds them, and they are left.
func (s *Store) findAtOnce(ctx context.Context, x runner, p ClaimParams, quotas map[string]*quota, rests []Rest) ([]*Claim, error) {
	delays := delaysOf(p.Sources)
	wanted := wantedLanes(p.Sources, delays)
	limit := p.Limit
	for _, q := range quotas {
		if !slices.ContainsFunc(p.Sources, func(from Source) bool { return !from.has(q.Name) }) {
			limit = min(limit, q.room) // all sources share it
		}
	}
	for i, from := range p.Sources {
		wanted[i].Room, _ = roomOf(from, quotas, limit)
	}
	lists := make([][]*Claim, len(p.Sources))
	if limit > 0 {
		lanes := statements.RoomColumns.Rows(len(wanted), func(i int) *statements.WantedLane { return &wanted[i] })
		stmt := s.stmt(stmtKey{name: "find due", formulas: s.numbersOf(delays)}, func() statements.Stmt {
			return statements.FindDue(s.server, claimParams(s.tables, delays, false))
		})
		err := x.query(ctx, stmt, statements.Values{"queue": p.Queue, "limit": limit}, lanes, func(r row) error {
			c, err := scanClaim(r, p.Sources)
			if err == nil {
				lists[c.Place-1] = append(lists[c.Place-1], c)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var found []*Claim
	seen := 0
	for i, from := range p.Sources {
		list, asked := lists[i], wanted[i].Room
		cut := seen+len(list) >= limit // the statement found no more after these
		seen += len(list)
		room, by := roomOf(from, quotas, p.Limit-len(found))
		n := min(len(list), room)
		switch {
		case room == 0 || n == room && n > 0:
			rests[i] = restOf(n, room, by)
		case cut && len(list) < asked:
			rests[i] = Rest{Hold: More}
		default:
			rests[i] = Rest{Hold: Emptied}
		}
		found = append(found, list[:n]...)
		from.count(n, quotas)
	}
	return found, nil
}

func (l Source) has(name string) bool {
	return slices.ContainsFunc(l.Limits, func(l Limit) bool { return l.Name == name })
}

// takeLimited claims tasks that were found in the same transaction and that the limits of
// their sources admit: those whose permits it can take. It corrects rests.
func (s *Store) takeLimited(ctx context.Context, x runner, p ClaimParams, found []*Claim, quotas map[string]*quota, rests []Rest) ([]*Claim, error) {
	var grants []statements.Grant
	names := map[int64]string{} // of limits, by the ids of their permits
	owners := map[int64]*Claim{}
	for _, c := range found {
		for _, l := range p.Sources[c.Place-1].Limits {
			q := quotas[l.Name]
			permit := q.free[0]
			q.free = q.free[1:]
			grants = append(grants, statements.Grant{Permit: permit.ID, Key: Key{TaskID: c.ID, Fence: statements.NextFence(c.Fence)}, Was: permit.Key})
			names[permit.ID], owners[permit.ID] = l.Name, c
		}
	}
	lost, err := s.takePermits(ctx, x, grants)
	if err != nil {
		return nil, err
	}
	outrun := map[*Claim]bool{}
	for _, permit := range lost {
		c := owners[permit]
		outrun[c] = true
		rests[c.Place-1] = Rest{Hold: Outrun, Name: names[permit]}
	}
	return s.takeAll(ctx, x, p, slices.DeleteFunc(found, func(c *Claim) bool { return outrun[c] }))
}

// takePermits gives permits to claims, and returns the ids of those that others have
// taken.
func (s *Store) takePermits(ctx context.Context, x runner, grants []statements.Grant) (lost []int64, err error) {
	// In one order, so that no two claims wait for each other's rows.
	slices.SortFunc(grants, func(a, b statements.Grant) int { return cmp.Compare(a.Permit, b.Permit) })
	for list := range slices.Chunk(grants, MaxBatch) {
		rows := statements.GrantColumns.Rows(len(list), func(i int) *statements.Grant { return &list[i] })
		matched, missing, err := s.change(ctx, x, s.batch("take permits", len(list), statements.TakePermits), nil, rows)
		if err != nil {
			return nil, err
		}
		if matched == len(list) {
			continue
		}
		if !s.server.Caps.UpdateReturning {
			keys := make([]statements.Row, len(rows))
			for i, r := range rows {
				keys[i] = r[:3]
			}
			ids, err := int64s(ctx, x, s.batch("taken permits", len(list), statements.TakenPermits), nil, keys)
			if err != nil {
				return nil, err
			}
			taken := SetOf(ids)
			for _, g := range list {
				if !taken[g.Permit] {
					missing = append(missing, g.Permit)
				}
			}
		}
		lost = append(lost, missing...)
	}
	return lost, nil
}
