package uniquekey

import (
	"encoding/json"
	"strings"
	"testing"
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

func keyOf(t *testing.T, by By, kind string, args any) (string, error) {
	t.Helper()
	payload, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return by.Hash(kind, args, payload, nil)
}

// TestUniqueKeysDiffer: no two of these tasks have one key, and each has its own again.
func TestUniqueKeysDiffer(t *testing.T) {
	t.Parallel()
	keys := map[string]int{}
	for i, c := range []struct {
		by   By
		kind string
		args any
	}{
		{By{Form: ByArgs}, "k", sale{Customer: "a"}},
		{By{Form: ByArgs}, "k", sale{Customer: "b"}},
		{By{Form: ByArgs}, "k2", sale{Customer: "a"}},
		{By{Form: ByArgs}, "k", "kind"},
		{By{Form: ByKind}, "k", sale{Customer: "a"}},
		{By{Form: ByKind}, "kind", nil},
		{By{Form: ByKey, Key: "a"}, "k", nil},
		{By{Form: ByKey, Key: "kind"}, "k", nil},
		{By{Form: ByKey, Key: "ka"}, "", nil},
		{By{Form: ByFields, Fields: []string{"customer"}}, "k", sale{Customer: "a"}},
		{By{Form: ByFields, Fields: []string{"customer", "note"}}, "k", sale{Customer: "a"}},
		{By{Form: ByFields, Fields: []string{"customer", "note"}}, "k", sale{Customer: "a", Note: "n"}},
		{By{Form: ByFields, Fields: []string{"customer", "note"}}, "k", map[string]any{"customer": "a", "note": nil}},
		{By{Form: ByFields, Fields: []string{"customer", "Amount"}}, "k", sale{Customer: "a"}},
		{By{Form: ByFields, Fields: []string{"customer", "shop"}}, "k", sale{Customer: "a"}},
		{By{Form: ByFields, Fields: []string{"first"}}, "k", ownJSON{"a"}},
		{By{Form: ByFields, Fields: []string{"first"}}, "k", &ownJSON{"b"}},
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
	one, _ := keyOf(t, By{Form: ByFields, Fields: []string{"note", "customer", "note"}}, "k", sale{Customer: "a", Note: "n"})
	other, _ := keyOf(t, By{Form: ByFields, Fields: []string{"customer", "note"}}, "k", &sale{Customer: "a", Note: "n", Amount: 3, private: 4})
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
		`ByFields: uniquekey.sale has no field "costumer": must be one of Amount, customer, note, shop`: {"costumer", sale{}},
		`field "Ignored"`: {"Ignored", sale{}},
		`ByFields: uniquekey.ownJSON has no field "second": must be one of first`: {"second", ownJSON{}},
		`ByFields: map[string]int has no field "b": must be one of a`:             {"b", map[string]int{"a": 1}},
		"must be a JSON object": {"a", []int{1}},
		"type <nil>":            {"a", nil},
	} {
		if _, err := keyOf(t, By{Form: ByFields, Fields: []string{c.name}}, "k", c.args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %T: error %v, want %s", c.name, c.args, err, want)
		}
	}
}

// TestASecretWithoutHashes: unique keys do not depend on a codec that makes no hashes.
func TestASecretWithoutHashes(t *testing.T) {
	t.Parallel()
	by := By{Form: ByKey, Key: "a"}
	want, _ := by.Hash("k", 1, []byte("1"), nil)
	if got, err := by.Hash("k", 1, []byte("1"), func([]byte) []byte { return nil }); got != want || err != nil {
		t.Errorf("the unique key is %q, %v, want %q", got, err, want)
	}
}

func TestShortHashesAreRefused(t *testing.T) {
	t.Parallel()
	for length, ok := range map[int]bool{0: false, 31: false, 32: true, 64: true} {
		if _, err := (By{Form: ByArgs}).Hash("k", 1, []byte("1"), func([]byte) []byte { return make([]byte, length) }); (err == nil) != ok {
			t.Errorf("a hash of %d bytes: %v", length, err)
		}
	}
}
