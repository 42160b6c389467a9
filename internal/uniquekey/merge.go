package uniquekey

import "github.com/falldue/falldue/internal/store"

// Merge merges entries with equal unique keys. It returns the first entry of each key and all entries without a key, the
// unique option of each of these, and, for each of the given entries, its index among these. A later entry of a key
// replaces the contents of the first if its conflict option says so. The error is a [store.ExistsError] if a
// conflict is not resolved.
func Merge(entries []store.Entry, uniques []store.Unique) (merged []store.Entry, how []store.Unique, place []int, _ error) {
	place = make([]int, len(entries))
	places := map[string]int{} // by unique key
	for i, e := range entries {
		at, known := places[e.Unique]
		if e.Unique == "" || !known {
			at = len(merged)
			merged, how = append(merged, e), append(how, uniques[i])
			places[e.Unique] = at
		} else {
			switch uniques[i].Conflict {
			case store.ConflictFail:
				return nil, nil, nil, &store.ExistsError{}
			case store.ConflictReplace:
				first := &merged[at]
				first.Payload, first.Metadata, first.Key, first.At, first.Delay = e.Payload, e.Metadata, e.Key, e.At, e.Delay
				how[at].Conflict = store.ConflictReplace
			}
		}
		place[i] = at
	}
	return merged, how, place, nil
}
