package falldue

import (
	"encoding/json"
	"fmt"

	"github.com/falldue/falldue/internal/storable"
)

// Codec changes payloads and results on their way into the table and out of it, to encrypt
// or compress them, for example. Package sealed has one that does both. A codec is used by
// many goroutines at once.
//
// All processes that enqueue, run or read tasks of a table need codecs that can decode what
// the others encode. Error texts, the messages of [Task.Progress], keys and names are not
// encoded.
type Codec interface {
	// Encode returns what to store in place of data, which is the JSON of a payload or a
	// result of a task of a kind. What it returns must be JSON too, a string for example.
	Encode(kind string, data []byte) (stored []byte, err error)
	// Decode returns the data that was given to Encode. What is stored may also be plain
	// JSON, of tasks that were enqueued without the codec. An error fails the attempt of
	// the task; it should say what is missing, such as a key.
	Decode(kind string, stored []byte) (data []byte, err error)
}

// encode returns the JSON to store for a payload or a result. A nil codec changes nothing.
func encode(c Codec, kind string, data []byte) (string, error) {
	if c == nil {
		return string(data), nil
	}
	stored, err := c.Encode(kind, data)
	if err != nil {
		return "", fmt.Errorf("encode by the codec: %w", err)
	}
	if !json.Valid(stored) {
		return "", invalid("what the codec returned, which is no JSON: %.40q", stored)
	}
	if len(stored) > maxStored {
		return "", invalid("what the codec returned, which has %d bytes; allowed are %d", len(stored), maxStored)
	}
	if err := storable.Check(stored); err != nil {
		return "", invalid("what the codec returned: %w", err)
	}
	return string(stored), nil
}

// maxStored is the greatest length of what a codec returns: twice the greatest MaxPayload.
const maxStored = 128 << 20

// decode returns the JSON of a payload or a result that is stored. Nothing that is stored
// is nothing.
func decode(c Codec, kind string, stored []byte) ([]byte, error) {
	if c == nil || stored == nil {
		return stored, nil
	}
	data, err := c.Decode(kind, stored)
	if err != nil {
		return nil, fmt.Errorf("decode by the codec: %w", err)
	}
	return data, nil
}
