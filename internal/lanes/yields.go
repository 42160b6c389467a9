package lanes

import (
	"slices"
	"time"
)

// yields counts the tasks that a priority leaves to later priorities, if these have a share of the tasks.
type yields struct {
	owed    int  // hundredths of tasks that later priorities are still to get; less than 0 if they had more
	shared  bool // lanes of this priority and of a later one were due before the last claim
	skipped bool // that claim began with a later priority
}

// inOrder returns the priorities in the order in which to claim: the most urgent one first, unless it owes a task to
// later ones. While no later priority has due lanes, a priority owes nothing, so no share is saved up.
func (l *Tracker) inOrder(now time.Time) []int {
	if l.lowShare == 0 || len(l.priorities) < 2 {
		return l.priorities
	}
	var due []int // the places of priorities with due lanes
	for i, priority := range l.priorities {
		w := l.waiting[priority]
		w.admit(now)
		if w.shared, w.skipped = false, false; w.next() != nil {
			due = append(due, i)
		}
	}
	first := 0
	for n, i := range due {
		w := l.waiting[l.priorities[i]]
		if w.shared = n+1 < len(due); !w.shared {
			w.owed = 0
		}
		if w.skipped = n == first && w.owed >= 100-l.lowShare; w.skipped {
			first++
		}
	}
	if first == 0 {
		return l.priorities
	}
	at := due[first]
	return slices.Concat(l.priorities[at:], l.priorities[:at])
}

// account records that a claim took tasks of a priority.
func (l *Tracker) account(priority, tasks int) {
	if l.lowShare == 0 {
		return
	}
	for _, before := range l.priorities {
		w := l.waiting[before]
		switch {
		case before < priority && w.skipped:
			w.owed -= tasks * (100 - l.lowShare)
		case before == priority && w.shared:
			w.owed += tasks * l.lowShare
		}
	}
}
