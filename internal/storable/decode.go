//go:build !goexperiment.jsonv2

package storable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Decoder returns a function that decodes JSON as [json.Unmarshal] does, into a new value.
//
// json.Unmarshal makes a decoder each time, which is most of what it allocates. The function uses
// decoders again, unless T has methods that could keep a part of the text: then another text would
// overwrite it.
func Decoder[T any]() func(text []byte) (T, error) {
	if mayKeepText(reflect.TypeFor[T](), map[reflect.Type]bool{}) {
		return unmarshal[T]
	}
	return func(text []byte) (T, error) {
		var v T
		if len(text) <= maxLength && decode(text, &v) == nil {
			return v, nil
		}
		return unmarshal[T](text) // v may have been read in part, and the error be another one
	}
}

// maxLength is the greatest length of a text that a decoder is used for again. A decoder keeps
// room for twice as much, with the text that it read last.
const maxLength = 64 << 10

//nolint:gochecknoglobals // whoever decodes shares them
var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.json = json.NewDecoder(&d.text)
	return d
}}

// decoder is a decoder of JSON and the text that it reads.
type decoder struct {
	json *json.Decoder
	text bytes.Reader
}

func decode(text []byte, v any) error {
	d := decoders.Get().(*decoder)
	d.text.Reset(text)
	start := d.json.InputOffset()
	err := d.json.Decode(v)
	if err == nil && d.json.InputOffset() != start+int64(len(text)) {
		err = errRest
	}
	if err == nil { // else the decoder is of no more use
		d.text.Reset(nil)
		decoders.Put(d)
	}
	return err
}

var errRest = errors.New("the JSON has data after its end")

// copies are types with methods that read JSON, which copy what they keep.
//
//nolint:gochecknoglobals // a constant
var copies = []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage]()}

// mayKeepText reports whether a type, or one inside of it, has methods that read JSON and that
// might keep a part of it. seen has the types that are asked about already.
func mayKeepText(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || slices.Contains(copies, t) {
		return false
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Map:
		return mayKeepText(t.Key(), seen) || mayKeepText(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayKeepText(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if mayKeepText(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
