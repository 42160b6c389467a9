package uniquekey

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestMerge: of tasks with one key the first is left, with what later ones replace.
func TestMerge(t *testing.T) {
	t.Parallel()
	skip, fail, replace := store.Unique{}, store.Unique{Conflict: store.ConflictFail}, store.Unique{Conflict: store.ConflictReplace, Scope: store.UniqueFor, For: time.Hour}
	entries := []store.Entry{{Unique: "a", Payload: "1"}, {Payload: "2"}, {Unique: "b", Payload: "3"}, {Payload: "4"}, {Unique: "a", Payload: "5", Key: "k", Delay: 7}, {Unique: "b", Payload: "6"}}
	uniques := []store.Unique{skip, {}, skip, {}, replace, skip}
	merged, how, place, err := Merge(entries, uniques)
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Entry{{Unique: "a", Payload: "5", Key: "k", Delay: 7}, {Payload: "2"}, {Unique: "b", Payload: "3"}, {Payload: "4"}}
	if !slices.Equal(merged, want) || how[0].Conflict != store.ConflictReplace {
		t.Errorf("merged: %+v, unique as %+v", merged, how)
	}
	if want := []int{0, 1, 2, 3, 0, 2}; !slices.Equal(place, want) {
		t.Errorf("the places are %v, want %v", place, want)
	}
	uniques[5] = fail
	if _, _, _, err := Merge(entries, uniques); !isExists(err) {
		t.Errorf("with ConflictFail: %v", err)
	}
}

func isExists(err error) bool {
	_, ok := errors.AsType[*store.ExistsError](err)
	return ok
}
