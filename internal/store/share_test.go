package store

import (
	"fmt"
	"slices"
	"testing"
)

// TestShares: the turns of a priority have shares by their weights, however many lanes they have. Turns that certainly
// have more tasks get the share that the others may leave.
func TestShares(t *testing.T) {
	t.Parallel()
	from := func(kind, key string, priority int, more bool) Source {
		return Source{Lane: Lane{Kind: kind, Key: key, Priority: priority}, More: more}
	}
	var manyKeys []Source
	for i := range 200 {
		manyKeys = append(manyKeys, from("a", fmt.Sprint(i), 0, true))
	}
	weighted := func(first Source, others ...Source) []Source {
		first.Weight = 3
		return append([]Source{first}, others...)
	}
	for _, c := range []struct {
		what    string
		sources []Source
		want    []int
	}{
		{"no source", nil, nil},
		{"one source", []Source{from("a", "", 0, false)}, []int{100}},
		{"weights", weighted(from("a", "t=1", 0, true), from("b", "", 0, true), from("a", "t=2", 0, false)), []int{75, 25, 20}},
		{"one of each priority", []Source{from("a", "", 0, true), from("a", "", 1, true)}, []int{100, 100}},
		{"kinds", []Source{from("a", "", 0, false), from("b", "", 0, false), from("c", "", 0, false)}, []int{34, 34, 34}},
		{"tenants", []Source{from("a", "t=1/e=1", 0, false), from("a", "t=1/e=2", 0, false), from("a", "t=2/e=1", 0, false)}, []int{25, 25, 50}},
		{"keys", []Source{from("a", "t=1", 0, true), from("a", "t=2", 0, true), from("b", "t=1", 0, true), from("a", "t/1", 0, true)}, []int{25, 25, 25, 25}},
		{"two with more", []Source{from("a", "", 0, true), from("b", "", 0, false), from("c", "", 0, true), from("d", "", 0, false)}, []int{50, 25, 50, 25}},
		{"lanes of one key", []Source{from("a", "", 0, true), from("a", "", 0, true), from("a", "", 0, false), from("b", "", 0, true)}, []int{50, 50, 50, 50}},
		{"more lanes than tasks", manyKeys, slices.Repeat([]int{20}, 200)},
	} {
		Share(c.sources, 100)
		var got []int
		for _, s := range c.sources {
			got = append(got, s.Room)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the rooms are %v, want %v", c.what, got, c.want)
		}
	}
}
