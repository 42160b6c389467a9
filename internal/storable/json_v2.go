//go:build goexperiment.jsonv2

package storable

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
)

// toJSON returns the JSON of a value. Built on version 2, encoding/json replaces bytes that are
// not UTF-8 by U+FFFD, unescaped. toJSON returns an error for them.
func toJSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err == nil && bytes.ContainsRune(data, '\ufffd') {
		_, err = jsonv2.Marshal(v, json.DefaultOptionsV1(), jsontext.AllowInvalidUTF8(false))
	}
	return data, err
}

// Decoder returns a function that decodes JSON as [json.Unmarshal] does, into a new value.
func Decoder[T any]() func(text []byte) (T, error) { return unmarshal[T] }
