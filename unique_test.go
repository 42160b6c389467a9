package falldue

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// shop is embedded in the arguments of tasks.
type shop struct {
	Shop string `json:"shop"`
}

type sale struct {
	shop
	Customer string `json:"customer"`
	Note     string `json:"note,omitempty"`
	Amount   int
	Ignored  string `json:"-"`
	private  int
}

// ownJSON is a type that writes its own JSON.
type ownJSON []string

func (l ownJSON) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"first": strings.Join(l, " ")})
}

func keyOf(t *testing.T, by UniqueBy, kind string, args any) (string, error) {
	t.Helper()
	payload, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return (Unique{By: by}).hash(nil, kind, args, payload)
}

// TestUniqueKeysDiffer: no two of these tasks have one key, and each has its own again.
func TestUniqueKeysDiffer(t *testing.T) {
	t.Parallel()
	keys := map[string]int{}
	for i, c := range []struct {
		by   UniqueBy
		kind string
		args any
	}{
		{ByArgs(), "k", sale{Customer: "a"}},
		{ByArgs(), "k", sale{Customer: "b"}},
		{ByArgs(), "k2", sale{Customer: "a"}},
		{ByArgs(), "k", "kind"},
		{ByKind(), "k", sale{Customer: "a"}},
		{ByKind(), "kind", nil},
		{ByKey("a"), "k", nil},
		{ByKey("kind"), "k", nil},
		{ByKey("ka"), "", nil},
		{ByFields("customer"), "k", sale{Customer: "a"}},
		{ByFields("customer", "note"), "k", sale{Customer: "a"}},
		{ByFields("customer", "note"), "k", sale{Customer: "a", Note: "n"}},
		{ByFields("customer", "note"), "k", map[string]any{"customer": "a", "note": nil}},
		{ByFields("customer", "Amount"), "k", sale{Customer: "a"}},
		{ByFields("customer", "shop"), "k", sale{Customer: "a"}},
		{ByFields("first"), "k", ownJSON{"a"}},
		{ByFields("first"), "k", &ownJSON{"b"}},
	} {
		for range 2 {
			key, err := keyOf(t, c.by, c.kind, c.args)
			if err != nil || len(key) != 43 {
				t.Fatalf("%+v: %q, %v", c, key, err)
			}
			if other, ok := keys[key]; ok && other != i {
				t.Errorf("%d and %d have one key", other, i)
			}
			keys[key] = i
		}
	}
	one, _ := keyOf(t, ByFields("note", "customer", "note"), "k", sale{Customer: "a", Note: "n"})
	other, _ := keyOf(t, ByFields("customer", "note"), "k", &sale{Customer: "a", Note: "n", Amount: 3, private: 4})
	if one != other {
		t.Error("the order of fields, or other fields, make another key")
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		name string
		args any
	}{
		`field "costumer" in ByFields; the arguments, of type falldue.sale, have Amount, customer, note, shop`: {"costumer", sale{}},
		`field "Ignored"`: {"Ignored", sale{}},
		`field "second" in ByFields; the arguments, of type falldue.ownJSON, have first`: {"second", ownJSON{}},
		`field "b" in ByFields; the arguments, of type map[string]int, have a`:           {"b", map[string]int{"a": 1}},
		"no JSON object": {"a", []int{1}},
		"type <nil>":     {"a", nil},
	} {
		if _, err := keyOf(t, ByFields(c.name), "k", c.args); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %T: error %v, want %s", c.name, c.args, err, want)
		}
	}
}

// hasher is a codec that makes hashes of a length, and none if that is below 0.
type hasher struct {
	Codec
	length int
}

func (h hasher) Hash([]byte) []byte {
	if h.length < 0 {
		return nil
	}
	return make([]byte, h.length)
}

// TestCodecWithoutHashes: unique keys do not depend on a codec that makes no hashes.
func TestCodecWithoutHashes(t *testing.T) {
	t.Parallel()
	unique := Unique{By: ByKey("a")}
	want, _ := unique.hash(nil, "k", 1, []byte("1"))
	if got, err := unique.hash(hasher{length: -1}, "k", 1, []byte("1")); got != want || err != nil {
		t.Errorf("the unique key is %q, %v, want %q", got, err, want)
	}
}

func TestShortHashesAreRefused(t *testing.T) {
	t.Parallel()
	for length, ok := range map[int]bool{0: false, 31: false, 32: true, 64: true} {
		if _, err := (Unique{By: ByArgs()}).hash(hasher{length: length}, "k", 1, []byte("1")); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("a hash of %d bytes: %v", length, err)
		}
	}
}

// TestDedupe: of tasks with one key the first is left, with what later ones replace.
func TestDedupe(t *testing.T) {
	t.Parallel()
	skip, fail, replace := store.Unique{}, store.Unique{Conflict: store.ConflictFail}, store.Unique{Conflict: store.ConflictReplace, Scope: store.UniqueFor, For: time.Hour}
	entries := []store.Entry{{Unique: "a", Payload: "1"}, {Payload: "2"}, {Unique: "b", Payload: "3"}, {Payload: "4"}, {Unique: "a", Payload: "5", Key: "k", Delay: 7}, {Unique: "b", Payload: "6"}}
	p := &pending{entries: entries, uniques: []store.Unique{skip, {}, skip, {}, replace, skip}}
	some, place, err := p.dedupe()
	if err != nil {
		t.Fatal(err)
	}
	receipts := receiptsAt(place, []Receipt{{ID: 1}, {ID: 2}, {ID: 3, Existed: true}, {ID: 4}})
	want := []store.Entry{{Unique: "a", Payload: "5", Key: "k", Delay: 7}, {Payload: "2"}, {Unique: "b", Payload: "3"}, {Payload: "4"}}
	if !slices.Equal(some.entries, want) || some.uniques[0].Conflict != store.ConflictReplace {
		t.Errorf("without the others: %+v", some)
	}
	if want := []Receipt{{1, false}, {2, false}, {3, true}, {4, false}, {1, true}, {3, true}}; !slices.Equal(receipts, want) {
		t.Errorf("the receipts are %v, want %v", receipts, want)
	}
	p.uniques[5] = fail
	if _, _, err := p.dedupe(); !errors.Is(err, ErrExists) {
		t.Errorf("with ConflictFail: %v", err)
	}
}
