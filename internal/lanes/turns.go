package lanes

import (
	"container/heap"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// laneHeap holds lanes in which a task is known.
type laneHeap = indexedHeap[*laneState]

// class sorts the lanes of a priority. Claims under limits are separate statements.
type class int

const (
	free    class = iota // no limit applies
	limited              // the limits may admit tasks
	retried              // a limit held the lane back at the last try, and may still do so
	numClasses
)

func (f *laneState) classNow() class {
	switch {
	case !f.limited:
		return free
	case f.retried:
		return retried
	}
	return limited
}

// classes has the lanes of a priority, by their classes.
type classes struct {
	lines [numClasses]line
	pass  int64 // the highest pass that a group had when a claim took its tasks
	yields
}

// line has the lanes of a class. Its groups of due lanes take turns.
type line struct {
	later  laneHeap // the lanes that are not in a group
	groups indexedHeap[*group]
	byTurn map[store.Turn]*group
	due    int // how many lanes are in groups
}

// group has the due lanes of one turn in a class. The group with the lowest pass comes next. A claim adds to the pass
// of a group the number of tasks that it takes, divided by the weight of the turn. A group without tasks cannot save up
// its turns: when it has tasks again, its pass is at least the one that the last served group had before the claim.
type group struct {
	turn      store.Turn
	lanes     laneHeap
	pass      int64
	heapIndex int // in the heap of the line
}

func (g *group) at() *int { return &g.heapIndex }

// comesBefore reports whether claims take from the group before they take from another one.
func (g *group) comesBefore(other *group) bool {
	if g.pass != other.pass {
		return g.pass < other.pass
	}
	return g.lanes[0].comesBefore(other.lanes[0])
}

func (c *classes) push(f *laneState) {
	if f.in != c {
		f.in, f.pass = c, 0
	}
	f.class = f.classNow()
	heap.Push(&c.lines[f.class].later, f)
}

func (c *classes) remove(f *laneState) {
	if n := &c.lines[f.class]; f.group != nil {
		n.leave(f)
	} else {
		heap.Remove(&n.later, f.heapIndex)
	}
}

// fix moves a lane to its place after it has changed.
func (c *classes) fix(f *laneState) {
	n := &c.lines[f.class]
	switch {
	case f.group == nil:
		heap.Fix(&n.later, f.heapIndex)
	case f.Due.After(time.Now()):
		n.leave(f)
		heap.Push(&n.later, f)
	default:
		heap.Fix(&f.group.lanes, f.heapIndex)
		heap.Fix(&n.groups, f.group.heapIndex)
	}
}

// passUnit is added to the pass of a group with weight 1 for each task. Weights up to 16 divide it without a remainder.
const passUnit = 720_720

// took adds to the pass of a lane's group after a claim took tasks.
func (c *classes) took(f *laneState, by int64) {
	pass := &f.pass
	if f.group != nil {
		pass = &f.group.pass
	}
	c.pass = max(c.pass, *pass)
	*pass += by
	c.fix(f)
}

// admit moves the lanes that are due into their groups.
func (c *classes) admit(now time.Time) {
	for i := range c.lines {
		n := &c.lines[i]
		for len(n.later) > 0 && !n.later[0].Due.After(now) {
			f, _ := heap.Pop(&n.later).(*laneState)
			n.join(f, max(f.pass, c.pass))
		}
	}
}

// join adds a lane to its group. A new group begins at pass, and the pass of another one does not become lower.
func (n *line) join(f *laneState, pass int64) {
	turn := store.TurnOf(f.Lane)
	g := n.byTurn[turn]
	if n.due++; g == nil {
		g = &group{turn: turn, pass: pass}
		if n.byTurn == nil {
			n.byTurn = map[store.Turn]*group{}
		}
		n.byTurn[turn], f.group = g, g
		heap.Push(&g.lanes, f)
		heap.Push(&n.groups, g)
		return
	}
	f.group, g.pass = g, max(g.pass, f.pass)
	heap.Push(&g.lanes, f)
	heap.Fix(&n.groups, g.heapIndex)
}

// leave removes a lane from its group.
func (n *line) leave(f *laneState) {
	g := f.group
	f.group, f.pass = nil, max(f.pass, g.pass)
	if n.due--; len(g.lanes) == 1 {
		heap.Remove(&n.groups, g.heapIndex)
		delete(n.byTurn, g.turn)
		heap.Pop(&g.lanes)
		return
	}
	heap.Remove(&g.lanes, f.heapIndex)
	heap.Fix(&n.groups, g.heapIndex)
}

// lanes yields all lanes.
func (c *classes) lanes(yield func(*laneState) bool) {
	for i := range c.lines {
		for _, f := range c.lines[i].later {
			if !yield(f) {
				return
			}
		}
		for _, g := range c.lines[i].groups {
			for _, f := range g.lanes {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// retime sorts the lanes anew after many have changed.
func (c *classes) retime() {
	for i := range c.lines {
		n := &c.lines[i]
		for _, g := range n.groups {
			for _, f := range g.lanes {
				f.group, f.pass = nil, max(f.pass, g.pass)
				n.later.Push(f)
			}
		}
		n.groups, n.byTurn, n.due = nil, nil, 0
		heap.Init(&n.later)
	}
}

func (c *classes) empty() bool {
	for _, n := range c.lines {
		if len(n.later) > 0 || len(n.groups) > 0 {
			return false
		}
	}
	return true
}

// first returns when the first lane falls due, or fell due if some are in groups, and false if there is no lane.
func (c *classes) first() (first time.Time, ok bool) {
	for _, n := range c.lines {
		if len(n.groups) > 0 {
			return n.groups[0].lanes[0].Due, true
		}
		if len(n.later) > 0 && (!ok || n.later[0].Due.Before(first)) {
			first, ok = n.later[0].Due, true
		}
	}
	return first, ok
}

// next returns the group from which to take next, or nil if no lane is due.
func (c *classes) next() (first *group) {
	for _, n := range c.lines {
		if len(n.groups) > 0 && (first == nil || n.groups[0].comesBefore(first)) {
			first = n.groups[0]
		}
	}
	return first
}

// anyDue reports whether a lane with limits, or one without, is due.
func (c *classes) anyDue(withLimits bool) bool {
	if withLimits {
		return len(c.lines[limited].groups)+len(c.lines[retried].groups) > 0
	}
	return len(c.lines[free].groups) > 0
}

// due returns up to most lanes that are due, with limits or without. If more lanes are due, retried lanes are at
// most half of the list.
func (c *classes) due(most int, withLimits bool) (list []*laneState) {
	if !withLimits {
		return c.lines[free].first(most)
	}
	fresh, again := c.lines[limited].first(most), c.lines[retried].first(most)
	again = again[:min(len(again), max(most-len(fresh), most/2))]
	fresh = fresh[:min(len(fresh), most-len(again))]
	for i := range max(len(fresh), len(again)) {
		list = append(list, fresh[min(i, len(fresh)):min(i+1, len(fresh))]...)
		list = append(list, again[min(i, len(again)):min(i+1, len(again))]...)
	}
	return list
}

// first returns up to most of the due lanes, in the order in which to claim from them: the groups take turns, each with
// as many lanes as its weight.
func (n *line) first(most int) (list []*laneState) {
	var groups []*group
	for len(groups) < most && len(n.groups) > 0 {
		g, _ := heap.Pop(&n.groups).(*group)
		groups = append(groups, g)
	}
	for found := true; found && len(list) < most; {
		found = false
		for _, g := range groups {
			for n := 0; len(g.lanes) > 0 && len(list) < most && n < max(g.lanes[0].weight, 1); n++ {
				f, _ := heap.Pop(&g.lanes).(*laneState)
				list, found = append(list, f), true
			}
		}
	}
	for _, f := range list {
		heap.Push(&f.group.lanes, f)
	}
	for _, g := range groups {
		heap.Push(&n.groups, g)
	}
	return list
}

// dueCount returns how many lanes are due.
func (c *classes) dueCount(now time.Time) (due int) {
	for _, n := range c.lines {
		due += n.due + dueIn(n.later, 0, now)
	}
	return due
}
