//go:build !goexperiment.jsonv2

package storable

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
)

// toJSON returns the JSON of a value. It writes bytes that are not UTF-8 as an escape that it
// uses for nothing else, so that [Check] can refuse them.
func toJSON(v any) ([]byte, error) { return json.Marshal(v) }

// maxKept is the greatest length of a text that a decoder of decoders reads. It keeps as much room.
const maxKept = 64 << 10

// decoders have read a text each and wait for another one. [json.Unmarshal] makes a decoder
// each time, which is most of what it allocates.
//
//nolint:gochecknoglobals // it holds nothing of anybody's
var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.json = json.NewDecoder(&d.text)
	return d
}}

type decoder struct {
	json *json.Decoder
	text bytes.Reader
}

// decode reads the JSON of a value.
func decode(text []byte, v any) error {
	if len(text) > maxKept {
		return json.Unmarshal(text, v)
	}
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

var errRest = errors.New("the JSON has a rest")
