package falldue

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// lanes is what a poller knows of its queue: which lanes hold tasks, and where
// the first of each is. It only decides where to look and how long to sleep;
// what is due the database decides.
type lanes map[lane]front

// front is where a lane begins, as far as a poller knows.
type front struct {
	// due is when its first task falls due, by the worker's monotonic clock.
	due time.Time
	// since is a moment, in the database's microseconds since 1970, before
	// which claims need not look: what was there has been claimed. A task can
	// turn up before it all the same, when a transaction commits late; so every
	// sweep looks from the beginning and sets it back.
	since int64
	// next is when the first task falls due that this process put into the lane
	// since a claim or a sweep last began: the answer may lack it. It is zero
	// where there is none.
	next time.Time
	// stuck is of a lane whose first task was edited to be from before all time.
	// It seems due, and it may be that no claim ever finds it.
	stuck bool
}

// hint notes that a lane has a task that falls due at t.
func (l lanes) hint(at lane, t time.Time) {
	f, known := l[at]
	if !known || t.Before(f.due) {
		f.due, f.since = t, 0 // it lies before what was the first task
	}
	if f.next.IsZero() || t.Before(f.next) {
		f.next = t
	}
	l[at] = f
}

// ask is called before a claim or a sweep begins, with the lanes it is of. From
// then on what is put into them may be missing in its answer.
func (l lanes) ask(list iter.Seq[lane]) {
	for at := range list {
		if f, known := l[at]; known {
			f.next = time.Time{}
			l[at] = f
		}
	}
}

// emptied notes that a claim took all that was due in a lane when it began.
func (l lanes) emptied(at lane) {
	next := l[at].next
	delete(l, at)
	if !next.IsZero() {
		l.hint(at, next)
	}
}

// found replaces what is known by what a sweep that began at start has found.
// What was told meanwhile may be newer.
func (l lanes) found(found lanes, start time.Time) {
	for at, f := range l {
		if _, ok := found[at]; !ok && f.due.After(start) {
			found[at] = f
		} else if !f.next.IsZero() {
			found.hint(at, f.next)
		}
	}
	clear(l)
	maps.Copy(l, found)
}

// due lists the lanes with something due, in the order in which to claim from
// them: by priority, then whose first task has been due for the longest.
func (l lanes) due(now time.Time, most int) []lane {
	var list []lane
	for at, f := range l {
		if !f.due.After(now) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b lane) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), l[a].due.Compare(l[b].due), cmp.Compare(a.kind, b.kind), cmp.Compare(a.attempts, b.attempts))
	})
	return list[:min(len(list), most)]
}

// next is when the first lane falls due, and false when none is known.
func (l lanes) next() (first time.Time, ok bool) {
	for _, f := range l {
		if !ok || f.due.Before(first) {
			first, ok = f.due, true
		}
	}
	return first, ok
}
