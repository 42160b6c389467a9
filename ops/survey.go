package ops

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/store"
)

// bound limits a read: about how many lanes it finds, how many lanes each statement finds, and the time after
// which it begins no other statement.
type bound struct {
	lanes, page int
	within      time.Duration
}

var (
	// shortRead is for the reads of a monitor.
	shortRead = bound{5000, 1000, 300 * time.Millisecond}
	unbounded = bound{math.MaxInt, 5000, 24 * time.Hour}
)

// dueKept and failedKept are how many lanes of a kind in a queue a part of a survey keeps: the lanes that fell due
// first, some lanes of failed tasks, and as many lanes of dead tasks.
const dueKept, failedKept = 50, 100

// survey knows the lanes of all queues. Each read continues behind the lanes of the read before it, and a new pass
// begins after the last lane. So a read costs the same however many lanes there are, and the state of a lane is at most
// as old as one pass. A survey is not safe for concurrent use.
type survey struct {
	o      *Ops
	finder *store.LaneFinder
	queues []string

	fresh   []store.Place // of queues that this pass has not read yet
	waiting []store.Place // where the next read continues in other queues
	dead    []store.Place

	parts []part // by the reads of this pass; behind them the parts of the pass before
	next  int    // the part that is read next
	whole bool   // a pass has reached the last lane
}

// part is the kept state of the lanes that one read has found.
type part struct {
	read   time.Time // by this process's clock
	now    time.Time // by the database's clock
	queues map[string]*Queue
	due    map[QueueKind][]overdue.Lane // the earliest due first
	failed map[failedGroup][]failedLane
	cut    map[QueueKind]bool // some due lanes of the kind are not in due
	more   bool               // some failed lanes are not in failed
}

// failedLane is a lane of tasks that have failed.
type failedLane struct {
	queue string
	store.Head
}

// failedGroup is the dead tasks of a kind in a queue, or those that will be retried.
type failedGroup struct {
	QueueKind
	dead bool
}

func (o *Ops) newSurvey() *survey { return &survey{o: o, finder: o.store.NewLaneFinder()} }

// all reads all lanes.
func (s *survey) all(ctx context.Context, now snapshot) error {
	for {
		if err := s.read(ctx, now, unbounded); err != nil || s.whole {
			return err
		}
	}
}

// read reads the next lanes.
func (s *survey) read(ctx context.Context, now snapshot, most bound) (err error) {
	if s.next == 0 {
		if s.queues, err = s.o.store.Queues(ctx); err != nil {
			return err
		}
		s.fresh, s.waiting = nil, nil
		for _, queue := range s.queues {
			s.fresh = append(s.fresh, store.FirstPlace(queue))
		}
		s.dead = store.FinishedPlaces(s.queues, string(falldue.StateDead))
	}
	p := part{read: time.Now(), queues: map[string]*Queue{}, due: map[QueueKind][]overdue.Lane{}, failed: map[failedGroup][]failedLane{}, cut: map[QueueKind]bool{}}
	err = s.fill(ctx, &p, now, most)
	p.trim()
	if s.next < len(s.parts) {
		s.parts[s.next] = p
	} else {
		s.parts = append(s.parts, p)
	}
	if s.next++; len(s.fresh)+len(s.waiting)+len(s.dead) == 0 {
		s.parts, s.next, s.whole = s.parts[:s.next], 0, true
	}
	return err
}

// fill reads lanes into a part, with one statement at least for waiting tasks and one for dead tasks, however slow the
// database is. With an error it keeps the lanes that it has found.
func (s *survey) fill(ctx context.Context, p *part, now snapshot, most bound) error {
	left, late := most.lanes, false
	for ; len(s.fresh)+len(s.waiting) > 0 && left > 0 && !late; late = time.Since(p.read) > most.within/2 {
		found, err := s.find(ctx, min(left, most.page))
		if err != nil {
			return err
		}
		left -= len(found)
		if err := p.add(ctx, s.o.store, now, found); err != nil {
			return err
		}
	}
	left, late = most.lanes, false
	for ; len(s.dead) > 0 && left > 0 && !late; late = time.Since(p.read) > most.within {
		found, rest, err := s.o.store.FindFinished(ctx, s.dead, string(falldue.StateDead), min(left, most.page))
		if err != nil {
			return err
		}
		s.dead, left = rest, left-len(found)
		for _, f := range found {
			p.addFailed(f, true)
		}
	}
	return nil
}

// find finds up to most waiting lanes. It begins each queue before it continues in one.
func (s *survey) find(ctx context.Context, most int) (found []store.Found, err error) {
	var rest []store.Place
	if len(s.fresh) > 0 {
		if found, rest, err = s.finder.Find(ctx, s.fresh, most); err != nil {
			return nil, err
		}
		s.fresh = nil
		for _, place := range rest {
			if place == store.FirstPlace(place.Queue) {
				s.fresh = append(s.fresh, place)
			} else {
				s.waiting = append(s.waiting, place)
			}
		}
		return found, nil
	}
	found, rest, err = s.finder.Find(ctx, s.waiting[:1], most)
	if err == nil {
		s.waiting = append(s.waiting[1:], rest...)
	}
	return found, err
}

// add adds lanes with tasks that wait or run.
func (p *part) add(ctx context.Context, st *store.Store, now snapshot, found []store.Found) error {
	heads := make([]store.Head, len(found))
	for i, f := range found {
		heads[i] = f.Head
	}
	if err := now.readOwn(ctx, st, policyKeys(heads)); err != nil {
		return err
	}
	for _, f := range found {
		q, at := p.queues[f.Queue], QueueKind{Queue: f.Queue, Kind: f.Kind}
		if q == nil {
			q = &Queue{Name: f.Queue}
			p.queues[f.Queue] = q
		}
		if q.Lanes++; !slices.Contains(q.Kinds, f.Kind) {
			q.Kinds = append(q.Kinds, f.Kind)
		}
		q.Now, p.now = store.Time(f.Now), store.Time(f.Now)
		if f.Corrupt != nil {
			continue
		}
		if due, ok := now.dueIn(f.Queue, f.Lane, store.Time(f.Anchor), q.Now); ok {
			q.FirstDue = earlier(q.FirstDue, due)
		}
		if late, is := now.dueLane(f); is {
			p.due[at] = append(p.due[at], late)
		}
		if f.Attempts > 0 {
			p.addFailed(f, false)
		}
	}
	return nil
}

func (p *part) addFailed(f store.Found, dead bool) {
	if f.Corrupt == nil && f.Attempts > 0 {
		at := failedGroup{QueueKind{Queue: f.Queue, Kind: f.Kind}, dead}
		p.failed[at] = append(p.failed[at], failedLane{f.Queue, f.Head})
	}
}

// trim drops the lanes that are not kept.
func (p *part) trim() {
	for at, lanes := range p.due {
		slices.SortFunc(lanes, func(a, b overdue.Lane) int { return a.Due().Compare(b.Due()) })
		p.cut[at] = len(lanes) > dueKept
		p.due[at] = slices.Clone(lanes[:min(len(lanes), dueKept)])
	}
	for at, lanes := range p.failed {
		p.more = p.more || len(lanes) > failedKept
		p.failed[at] = spread(lanes, failedKept)
	}
}

// spread returns up to most elements at equal distances.
func spread[T any](list []T, most int) []T {
	some := make([]T, min(len(list), most))
	for i := range some {
		some[i] = list[i*len(list)/len(some)]
	}
	return some
}

// dueLane returns a lane whose first task is due, unless the lane is paused.
func (s snapshot) dueLane(f store.Found) (l overdue.Lane, is bool) {
	delay, wanted := s.delayOf(f.Queue, f.Lane)
	if !f.Delayed() {
		delay = 0
	}
	l = overdue.Lane{Queue: f.Queue, Lane: f.Lane, Wait: delay, Anchor: f.Anchor}
	return l, wanted && store.Duration(f.Now-max(f.Anchor, 0)) >= delay
}

// list returns the queues as far as they are known.
func (s *survey) list() (list []Queue) {
	for _, name := range s.queues {
		q := Queue{Name: name}
		for _, p := range s.parts {
			if of := p.queues[name]; of != nil {
				q.Kinds, q.Lanes, q.Now = append(q.Kinds, of.Kinds...), q.Lanes+of.Lanes, of.Now
				q.FirstDue = earlier(q.FirstDue, of.FirstDue)
			}
		}
		slices.Sort(q.Kinds)
		q.Kinds = slices.Compact(q.Kinds)
		list = append(list, q)
	}
	return list
}

// earlier returns the earlier of two times, of which any may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// age returns how long ago the lanes were read that were read first.
func (s *survey) age() (age time.Duration) {
	for _, p := range s.parts {
		age = max(age, time.Since(p.read))
	}
	return age
}

// overdue returns lanes with a first task that has been due for longer than after. Each kind of a queue has an
// equal share of most lanes, the earliest due first. cut has the kinds with further such lanes.
func (s *survey) overdue(after time.Duration, most int) (list []overdue.Lane, cut map[QueueKind]bool) {
	all := map[QueueKind][]overdue.Lane{}
	cut = map[QueueKind]bool{}
	for _, p := range s.parts {
		for at, lanes := range p.due {
			cut[at] = cut[at] || p.cut[at]
			for _, l := range lanes {
				if p.now.Sub(l.Due()) >= after {
					all[at] = append(all[at], l)
				}
			}
		}
	}
	for at, lanes := range all {
		slices.SortFunc(lanes, func(a, b overdue.Lane) int { return a.Due().Compare(b.Due()) })
		n := min(len(lanes), max(most/len(all), 1))
		cut[at] = cut[at] || n < len(lanes) || !s.whole
		list = append(list, lanes[:n]...)
	}
	return list, cut
}

// failed returns up to most lanes with failed tasks, in turns of all groups, and whether there are more.
func (s *survey) failed(most int) (list []failedLane, more bool) {
	all := map[failedGroup][]failedLane{}
	for _, p := range s.parts {
		more = more || p.more
		for at, lanes := range p.failed {
			all[at] = append(all[at], lanes...)
		}
	}
	groups := slices.SortedFunc(maps.Keys(all), func(a, b failedGroup) int {
		return cmp.Or(cmp.Compare(len(all[a]), len(all[b])), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	left := most
	for i, at := range groups { // other groups get the share that a small group leaves
		lanes := spread(all[at], max(left/(len(groups)-i), 1))
		more, left = more || len(lanes) < len(all[at]), left-len(lanes)
		all[at] = lanes
	}
	for n := range most {
		for _, at := range groups {
			if n < len(all[at]) {
				list = append(list, all[at][n])
			}
		}
	}
	return list[:min(len(list), most)], more || len(list) > most || !s.whole
}
