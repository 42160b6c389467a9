package store

import (
	"cmp"
	"context"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Reason is why a claim has left tasks of a source.
type Reason int

// The reasons why tasks of a source may be left.
const (
	// Emptied: none is due.
	Emptied Reason = iota
	// More: the claim took as many tasks as it should, or did not get as far as this source.
	More
	// Saturated: the limit Name admits no more.
	Saturated
	// Outrun: another claim took the permit.
	Outrun
	// LeftExpired: the claim found expired tasks, and left them as the source asks.
	LeftExpired
)

// Rest describes the tasks that a claim under limits left in a source.
type Rest struct {
	Why  Reason
	Name string        // of the limit
	Wait time.Duration // until the limit admits another task, or 0 if unknown
	Next *NextTask     // of a sequence: the task that the others wait for, or nil
}

// NextTask is the task of a sequence that has begun and waits for its next attempt.
type NextTask struct {
	Queue string
	Lane
	Anchor, Now int64 // by the database's clock
}

// Limited reports whether a limit has left tasks of the source.
func (r Rest) Limited() bool { return r.Why == Saturated || r.Why == Outrun }

// Limited is the result of a claim under limits.
type Limited struct {
	Claims []*Claim
	Rests  []Rest   // of each source
	Open   []string // the limits that admit more tasks
}

// fewSources is for how many sources a claim reads permits at first: so many for each task that it may take, and
// leastSources at least. To read the permits of hundreds of keys takes longer than to claim a few tasks.
const fewSources, leastSources = 4, 32

// ClaimLimited claims due tasks for a worker as [Store.Claim] does, in one transaction. Any of
// the sources may have limits. If limits hold back all sources, ClaimLimited only reads. It claims from the first
// sources, and from all only if limits hold back the first ones.
func (s *Store) ClaimLimited(ctx context.Context, p ClaimParams) (Limited, error) {
	all, few := p.Sources, min(len(p.Sources), max(fewSources*p.Limit, leastSources))
	p.Sources, p.later = all[:few], all[few:]
	quotas, err := s.quotas(ctx, nil, p)
	if err == nil && areHeld(p.Sources, quotas) && !areHeld(p.later, quotas) {
		p.Sources, p.later = all, nil
		quotas, err = s.quotas(ctx, nil, p)
	}
	if err != nil {
		return Limited{}, err
	}
	if areHeld(p.Sources, quotas) {
		_, rests, err := s.find(ctx, nil, p, quotas)
		return Limited{Rests: rests, Open: open(quotas)}, err
	}
	return inTx(ctx, s, func(x runner) (_ Limited, err error) {
		if quotas == nil { // this is not the first try
			if quotas, err = s.quotas(ctx, x, p); err != nil {
				return Limited{}, err
			}
		}
		now := quotas
		quotas = nil
		found, rests, err := s.find(ctx, x, p, now)
		if err != nil {
			return Limited{}, err
		}
		claims, err := s.takeLimited(ctx, x, p, found, now, rests)
		return Limited{Claims: claims, Rests: rests, Open: open(now)}, err
	})
}

// open lists the limits that admit more tasks.
func open(quotas map[string]*quota) (names []string) {
	for _, q := range quotas {
		if q.room > 0 && q.holder == nil {
			names = append(names, q.Name)
		}
	}
	return names
}

// areHeld reports whether limits hold back all tasks of sources, by the quotas that were read.
func areHeld(sources []Source, quotas map[string]*quota) bool {
	return !slices.ContainsFunc(sources, func(from Source) bool { return !isHeld(from, quotas) })
}

// isHeld reports whether a limit holds back all tasks of a source.
func isHeld(from Source, quotas map[string]*quota) bool {
	if saturated(from, quotas) != nil {
		return true
	}
	q := sequenceOf(from, quotas)
	return q != nil && q.holder != nil && !q.holder.IsIn(from.Lane)
}

// makePermits makes the permits that are missing for tasks that were found, and no others: a limit
// may admit many more tasks than wait.
func (s *Store) makePermits(ctx context.Context, x runner, found []*Claim, quotas map[string]*quota) error {
	tasks, needed := map[string]int{}, map[string]int{}
	for _, c := range found {
		for _, l := range c.Limits {
			if tasks[l.Name]++; l.Form == Bucket {
				needed[l.Name] = 1
			} else {
				needed[l.Name]++
			}
		}
	}
	var missing []statements.NewPermit
	var names []string
	for name, n := range needed {
		q := quotas[name]
		if n -= len(q.free); n <= 0 || q.missing == 0 {
			continue
		}
		names = append(names, name)
		for _, number := range q.firstMissing(n) {
			missing = append(missing, statements.NewPermit{Name: name, N: number})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b statements.NewPermit) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.N, b.N)) })
	err := inBatches(s, missing, func(list []statements.NewPermit) error {
		rows := statements.NewPermitColumns.Rows(len(list), func(i int) *statements.NewPermit { return &list[i] })
		_, err := x.exec(ctx, s.batch("make permits", len(list), statements.MakePermits), nil, rows)
		return err
	})
	if err != nil {
		return err
	}
	permits, err := s.readPermits(ctx, x, names)
	for _, name := range names {
		// The tasks were found when there were no permits. Others may have made the permits since then,
		// and have taken more of a bucket than is left for these tasks, or begun the sequence.
		now := newQuota(quotas[name].Limit, permits[name])
		if now.Form == Bucket && now.room < tasks[name] || now.holder != nil {
			now.free = nil
		}
		quotas[name].free = now.free
	}
	return err
}

// quotas returns the quotas of the limits of sources. It reads the permits that are not known to be free.
func (s *Store) quotas(ctx context.Context, x runner, p ClaimParams) (map[string]*quota, error) {
	limits := map[string]Limit{}
	known := map[string][]*statements.Permit{}
	var names []string
	for _, from := range p.Sources {
		for _, l := range from.Limits {
			if _, listed := limits[l.Name]; listed {
				continue
			}
			limits[l.Name] = l
			if list := s.knownFree(l); list != nil {
				known[l.Name] = list
			} else {
				names = append(names, l.Name)
			}
		}
	}
	permits, err := s.readPermits(ctx, x, names)
	if err != nil {
		return nil, err
	}
	maps.Copy(permits, known)
	quotas := make(map[string]*quota, len(limits))
	for name, l := range limits {
		quotas[name] = newQuota(l, permits[name])
		s.rivals.leave(quotas[name])
		if quotas[name].surplus {
			s.known.forget(name)
		}
	}
	return quotas, nil
}

// readPermits returns the permits of limits, by the limits' names. It reads them outside a transaction if x is nil.
func (s *Store) readPermits(ctx context.Context, x runner, names []string) (map[string][]*statements.Permit, error) {
	permits := make(map[string][]*statements.Permit, len(names))
	if x == nil && len(names) > 0 {
		return reading(ctx, s, func(x runner) (map[string][]*statements.Permit, error) { return s.readPermits(ctx, x, names) })
	}
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

// roomOf returns how many tasks the limits of a source admit, up to most. It subtracts the
// tasks that are reserved for the sources before it.
func roomOf(from Source, quotas map[string]*quota, most int) int {
	for _, l := range from.Limits {
		q := quotas[l.Name]
		most = min(most, q.room-q.reserved)
	}
	return max(most, 0)
}

// saturated returns a limit of a source that admits no task, or nil. It knows only quotas that were read.
func saturated(from Source, quotas map[string]*quota) *quota {
	for _, l := range from.Limits {
		if q := quotas[l.Name]; q != nil && q.room <= 0 {
			return q
		}
	}
	return nil
}

// wantedTasks asks for up to room tasks of a source, in addition to the before tasks found earlier.
type wantedTasks struct{ source, room, before int }

// find finds due tasks that the limits of their sources admit, subtracts them from the
// quotas, and returns the rest of each source, and of each later one.
func (s *Store) find(ctx context.Context, x runner, p ClaimParams, quotas map[string]*quota) (found []*Claim, rests []Rest, err error) {
	search := search{p: p, quotas: quotas, emptied: make([]bool, len(p.Sources)), counts: make([]int, len(p.Sources)), rooms: make([]int, len(p.Sources)), seen: map[int64]bool{}}
	for first := 0; first < len(p.Sources); { // one priority after the other
		end := first + 1
		for end < len(p.Sources) && p.Sources[end].Priority == p.Sources[first].Priority {
			end++
		}
		for again := true; again; {
			if again, err = search.round(ctx, s, x, first, end); err != nil {
				return nil, nil, err
			}
		}
		first = end
	}
	found, emptied := search.found, search.emptied
	found, expired := leaveExpired(found, p.Sources, quotas)
	slices.SortStableFunc(found, func(a, b *Claim) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Anchor, b.Anchor)) })
	rests = make([]Rest, len(p.Sources))
	for i, from := range p.Sources {
		q := saturated(from, quotas)
		if next := sequenceOf(from, quotas); q == nil && next != nil && next.holder != nil {
			q = next // the task that comes next is in another lane
		}
		switch {
		case expired[i]:
			rests[i] = Rest{Why: LeftExpired}
		case emptied[i] && (q == nil || q.holder == nil):
			rests[i] = Rest{Why: Emptied}
		case q != nil:
			rests[i] = Rest{Why: Saturated, Name: q.Name, Wait: q.wait, Next: q.nextTask(from.Lane)}
		default:
			rests[i] = Rest{Why: More}
		}
	}
	for _, from := range p.later {
		rest := Rest{Why: More}
		if q := saturated(from, quotas); q != nil {
			rest = Rest{Why: Saturated, Name: q.Name, Wait: q.wait}
		}
		rests = append(rests, rest)
	}
	return found, rests, nil
}

// leaveExpired returns found tasks without the expired ones that their sources leave, and these sources. It gives back
// to the quotas what it had subtracted for these tasks.
func leaveExpired(found []*Claim, sources []Source, quotas map[string]*quota) (rest []*Claim, expired map[int]bool) {
	return slices.DeleteFunc(found, func(c *Claim) bool {
		from := sources[c.Place-1]
		if !from.LeaveExpired || !slices.ContainsFunc(from.Limits, func(l Limit) bool { return l.Form.Timed() }) || !HasExpired(c.Metadata, c.From, c.Now) {
			return false
		}
		for _, l := range from.Limits {
			quotas[l.Name].room++
		}
		if expired == nil {
			expired = map[int]bool{}
		}
		expired[c.Place-1] = true
		return true
	}), expired
}

// search has the tasks that [Store.find] has found so far.
type search struct {
	p       ClaimParams
	quotas  map[string]*quota
	found   []*Claim
	emptied []bool         // of the sources
	counts  []int          // of tasks found in the sources
	rooms   []int          // their shares in the current round
	seen    map[int64]bool // found tasks: this transaction has locked them, and may find them again
}

// round searches each of the sources from first up to end once. One statement searches several sources
// as long as they cannot find more together than their limits admit. round reports whether another round
// may find more.
func (r *search) round(ctx context.Context, s *Store, x runner, first, end int) (again bool, err error) {
	r.share(first, end)
	places := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		places = append(places, i)
	}
	for len(places) > 0 {
		var wanted []wantedTasks
		if wanted, places = r.plan(s, places); len(wanted) == 0 {
			break
		}
		list, err := s.findWanted(ctx, x, r.p, wanted, r.quotas)
		if err != nil {
			return false, err
		}
		more := r.add(list, wanted)
		again = again || more
	}
	return again, nil
}

// share divides the rest of the claim among the sources from first up to end that may have tasks: a limit may
// admit more tasks than there are, and one key must not take all.
func (r *search) share(first, end int) {
	var open []Source
	var places []int
	for i := first; i < end; i++ {
		if from := r.p.Sources[i]; !r.emptied[i] && !isHeld(from, r.quotas) {
			from.More = false // the next round has the rest
			open, places = append(open, from), append(places, i)
		}
	}
	Share(open, r.p.Limit-len(r.found))
	for n, i := range places {
		r.rooms[i] = open[n].Room
	}
}

// add adds found tasks, and reports whether some source may have more.
func (r *search) add(list []*Claim, wanted []wantedTasks) (more bool) {
	returned := map[int]int{}
	for _, c := range list {
		if returned[c.Place-1]++; !r.seen[c.ID] {
			r.found, r.seen[c.ID] = append(r.found, c), true
			r.counts[c.Place-1]++
		}
	}
	for _, w := range wanted {
		r.emptied[w.source] = returned[w.source] < w.before+w.room
		more = more || !r.emptied[w.source]
		for _, l := range r.p.Sources[w.source].Limits {
			q := r.quotas[l.Name]
			q.room, q.reserved = q.room-(r.counts[w.source]-w.before), q.reserved-w.room
		}
	}
	return more
}

// plan divides the sources at places into the wanted ones, which the next statement searches, each with its share, and
// the rest. It reserves these shares. Of sequences, it puts aside the lanes for which there is no room yet, so that
// one search finds the next tasks of all sequences.
func (r *search) plan(s *Store, places []int) (wanted []wantedTasks, rest []int) {
	most := r.p.Limit - len(r.found)
	for n, place := range places {
		if most <= 0 {
			return wanted, append(rest, places[n:]...)
		}
		from := r.p.Sources[place]
		room := min(roomOf(from, r.quotas, most), r.rooms[place])
		fits := room > 0 && (len(wanted) == 0 || s.findsTogether(r.p.Sources[wanted[0].source], from))
		switch {
		case r.emptied[place] || isHeld(from, r.quotas):
			continue
		case !fits && len(wanted) > 0 && Ordered(r.p.Sources[wanted[0].source].Limits):
			rest = append(rest, place)
			continue
		case !fits: // other sources may leave some of their reserved shares
			return wanted, append(rest, places[n:]...)
		}
		wanted, most = append(wanted, wantedTasks{place, room, r.counts[place]}), most-room
		for _, l := range from.Limits {
			r.quotas[l.Name].reserved += room
		}
	}
	return wanted, rest
}

// findsTogether reports whether one statement can search two sources.
func (s *Store) findsTogether(a, b Source) bool {
	if Ordered(a.Limits) || Ordered(b.Limits) {
		return Ordered(a.Limits) && Ordered(b.Limits)
	}
	if a.formula() != nil || b.formula() != nil {
		return statements.ClaimsAtOnce(s.server) || s.server.Caps.JSONLateral && s.lookups.quick(time.Now())
	}
	return statements.ClaimsAtOnce(s.server) || statements.UnitesLanes(s.server)
}

// looksUp reports whether one lateral join finds the tasks of several sources on a server with Caps.JSONLateral.
func (s *Store) looksUp(p ClaimParams, wanted []wantedTasks) bool {
	if !s.server.Caps.JSONLateral || len(wanted) == 1 {
		return false
	}
	return s.lookups.quick(time.Now()) || slices.ContainsFunc(wanted, func(w wantedTasks) bool { return p.Sources[w.source].formula() != nil })
}

// findStmt returns the statement that finds due tasks in sources, with its values and its
// rows, and the sources. lookUp is the result of looksUp.
func (s *Store) findStmt(p ClaimParams, wanted []wantedTasks, lookUp bool) (stmt statements.Stmt, values statements.Values, rows []statements.Row, sources []Source) {
	sources = make([]Source, len(wanted))
	for i, w := range wanted {
		sources[i] = p.Sources[w.source]
	}
	delays := delaysOf(sources)
	lanes := wantedLanes(sources, delays)
	for i, w := range wanted {
		lanes[i].Room = w.before + w.room
	}
	rows = statements.LaneColumns.Rows(len(lanes), func(i int) *statements.WantedLane { return &lanes[i] })
	values = statements.Values{"queue": p.Queue}
	switch {
	case statements.ClaimsAtOnce(s.server) || lookUp:
		values["room"] = slices.MaxFunc(lanes, func(a, b statements.WantedLane) int { return cmp.Compare(a.Room, b.Room) }).Room
		stmt = s.stmt(stmtKey{name: "find due", formulas: s.numbersOf(delays)}, func() statements.Stmt {
			return statements.FindDue(s.server, claimParams(s.tables, delays, false))
		})
	case len(wanted) > 1:
		stmt = s.batch("unite lanes", len(wanted), statements.UniteLanes)
	default:
		stmt, values, rows = s.claimLane(sources[0]), laneValues(p.Queue, sources[0], wanted[0].before+wanted[0].room), nil
	}
	return stmt, values, rows, sources
}

// findIn finds due tasks in sources, in the order of these and of their anchors.
func (s *Store) findIn(ctx context.Context, x runner, p ClaimParams, wanted []wantedTasks) (found []*Claim, err error) {
	for _, group := range s.byRoom(wanted) {
		lookUp, start := s.looksUp(p, group), time.Now()
		stmt, values, rows, sources := s.findStmt(p, group, lookUp)
		var scanner claimScanner
		err = x.query(ctx, stmt, values, rows, func(r row) error {
			c, err := scanner.scan(r, sources)
			if err == nil {
				c.Place = group[c.Place-1].source + 1
				found = append(found, c)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if now := time.Now(); lookUp {
			s.lookups.took(now.Sub(start), len(group), now)
		}
	}
	slices.SortStableFunc(found, func(a, b *Claim) int { return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Anchor, b.Anchor)) })
	return s.within(found, wanted), nil
}

// byRoom returns the parts of wanted that one statement each searches. Where the sources of a statement have one
// room, which is the largest, no other is less than half of it.
func (s *Store) byRoom(wanted []wantedTasks) [][]wantedTasks {
	if !s.server.Caps.JSONLateral || len(wanted) == 1 {
		return [][]wantedTasks{wanted}
	}
	var groups [bits.UintSize][]wantedTasks
	for _, w := range wanted {
		n := bits.Len(uint(w.before + w.room - 1))
		groups[n] = append(groups[n], w)
	}
	return slices.DeleteFunc(groups[:], func(g []wantedTasks) bool { return g == nil })
}

// within returns found tasks without those beyond the room of their source, which a statement with one room for
// several sources finds. They stay locked until the transaction ends.
func (s *Store) within(found []*Claim, wanted []wantedTasks) []*Claim {
	if !s.server.Caps.JSONLateral {
		return found
	}
	rooms := make(map[int]int, len(wanted))
	for _, w := range wanted {
		rooms[w.source+1] = w.before + w.room
	}
	return slices.DeleteFunc(found, func(c *Claim) bool {
		rooms[c.Place]--
		return rooms[c.Place] < 0
	})
}
