package storable

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"
)

type (
	address struct {
		City, Street string
	}
	Person struct {
		City string
		Name string `json:"name"`
	}
	tagged struct {
		Town string `json:"City"`
	}
	named string
	loop  struct {
		*loop //nolint:unused // reflect uses it
		ID    int
	}
	writer struct{ City string }
	reader struct{ City string }
)

func (writer) MarshalJSON() ([]byte, error) { return []byte(`{"town":"x"}`), nil }
func (*reader) UnmarshalJSON([]byte) error  { return nil }

// TestFieldNames compares them with the fields of the JSON. It also runs with
// GOEXPERIMENT=jsonv2, see make portable.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	for what, value := range map[string]any{
		"tags": struct {
			A      int `json:"a"`
			B      int `json:",string"`
			C      int `json:"-"`
			D      int `json:"-,"` //nolint:staticcheck // its name is "-"
			E      []int
			F      time.Time
			G      any
			hidden int
		}{A: 1, E: []int{1}, G: 1, hidden: 1},
		"an embedded struct": struct{ address }{},
		"a pointer to one":   &struct{ *Person }{&Person{}},
		"a tagged one": struct {
			address `json:"address"`
		}{},
		"one that shares a name": struct {
			address
			Person
		}{},
		"one that shares a tagged one": struct {
			address
			tagged
		}{},
		"a name that hides another": struct {
			address
			City int
		}{},
		"a type that is no struct": struct {
			Named named
			named
		}{},
		"an interface":     struct{ fmt.Stringer }{time.Second},
		"a type in itself": loop{},
		"no field":         struct{}{},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if got, want := FieldNames(reflect.TypeOf(value)), slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
			t.Errorf("%s: the names are %q, and the JSON is %s", what, got, text)
		}
	}
	for what, value := range map[string]any{
		"nil": nil, "a number": 1, "a map": map[string]int{"a": 1}, "a type that writes its JSON": writer{}, "one that reads it": reader{}, "a pointer to one": &reader{},
		"names that differ in case": struct {
			A int `json:"city,omitempty"`
			B int `json:"City,omitempty"`
		}{},
	} {
		if got := FieldNames(reflect.TypeOf(value)); len(got) != 0 {
			t.Errorf("%s has the names %q", what, got)
		}
	}
}
