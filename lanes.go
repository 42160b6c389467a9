package falldue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/sqlgen"
)

// lanes is what a poller knows of its queue: which lanes hold tasks, and when
// the first of each falls due, by the worker's monotonic clock. It only decides
// where to look and how long to sleep; what is due the database decides.
type lanes map[lane]time.Time

// hint notes that a lane's first task falls due at t, or before.
func (l lanes) hint(at lane, t time.Time) {
	if known, ok := l[at]; !ok || t.Before(known) {
		l[at] = t
	}
}

// due lists the lanes with something due, in the order in which to claim from
// them: by priority, then whose first task has been due for the longest.
func (l lanes) due(now time.Time, most int) []lane {
	var list []lane
	for at, t := range l {
		if !t.After(now) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b lane) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), l[a].Compare(l[b]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.attempts, b.attempts))
	})
	return list[:min(len(list), most)]
}

// next is when the first lane falls due, and false when none is known.
func (l lanes) next() (first time.Time, ok bool) {
	for _, t := range l {
		if !ok || t.Before(first) {
			first, ok = t, true
		}
	}
	return first, ok
}

// sortedFormulas lists formulas by their text.
func sortedFormulas(set map[string]sqlgen.Formula) []sqlgen.Formula {
	list := make([]sqlgen.Formula, 0, len(set))
	for _, text := range slices.Sorted(maps.Keys(set)) {
		list = append(list, set[text])
	}
	return list
}
