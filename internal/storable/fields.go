package storable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// FieldNames returns the names under which encoding/json writes the fields of a struct, sorted. It
// returns none for a type that is no struct, or that has methods for its JSON.
//
// encoding/json itself decides: a name belongs to a field if a decoder accepts it. A decoder also
// accepts names in another case, so of two names that differ only in case, neither counts.
func FieldNames(t reflect.Type) []string {
	for t != nil && t.Kind() == reflect.Pointer && !hasMethods(t) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || hasMethods(reflect.PointerTo(t)) {
		return nil
	}
	if names, ok := fieldNames.Load(t); ok {
		return names.([]string) //nolint:forcetypeassert // it has no others
	}
	written := map[string]bool{}
	writtenNames(t, written, map[reflect.Type]bool{})
	var names []string
	for name := range written {
		if isField(t, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return other != name && strings.EqualFold(other, name) })
	})
	fieldNames.Store(t, names)
	return names
}

//nolint:gochecknoglobals // a cache, of as many types as a program has
var fieldNames sync.Map

// hasMethods reports whether a type has methods that read or write its JSON.
func hasMethods(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, t.Implements)
}

// writtenNames adds the names that the fields of a struct, and of structs in it, have in the
// program. Some do not belong to fields of its JSON. seen has the types that are done.
func writtenNames(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			names[name] = true
		case f.IsExported():
			names[f.Name] = true
		}
		if f.Anonymous || strings.Contains(options, "inline") {
			writtenNames(f.Type, names, seen)
		}
	}
}

// isField reports whether a decoder accepts a name in the JSON of a struct.
func isField(t reflect.Type, name string) bool {
	key, err := json.Marshal(name)
	if err != nil {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(slices.Concat([]byte("{"), key, []byte(":null}"))))
	d.DisallowUnknownFields()
	return d.Decode(reflect.New(t).Interface()) == nil
}
