package falldue

import (
	"encoding/json"
	"fmt"

	"github.com/falldue/falldue/internal/storable"
)

// Codec encodes payloads and results on their way into the table and decodes them on their way
// out, to encrypt or compress them, for example. Many goroutines use a codec concurrently.
//
// All processes that enqueue, run or read tasks of a table need codecs that can decode each
// other's data. Error texts, the messages of [Task.Progress], keys and names are not encoded.
type Codec interface {
	// Encode returns the JSON to store instead of data, which is the JSON of a payload or a
	// result. The stored JSON may be a string, for example.
	Encode(p Place, data []byte) (stored []byte, err error)
	// Decode returns the data that was passed to Encode for the same place. stored may also be the plain JSON of a task
	// that was enqueued without the codec. An error fails the attempt of the task. The error should name the missing
	// part, such as a key.
	Decode(p Place, stored []byte) (data []byte, err error)
	// Hash returns a hash of data, for comparing unique tasks ([Unique]): 32 bytes or more that depend only on data and
	// on a secret. Without the secret, an attacker cannot find data by hashing guesses. Processes with different secrets
	// do not recognize each other's unique tasks. A nil hash stands for the SHA-256 of data.
	Hash(data []byte) []byte
}

// Place is where encoded data is stored: its kind, column and task. A [Codec] that authenticates data should
// authenticate all fields of the Place together with the data, so that data copied elsewhere cannot be decoded.
type Place struct {
	// Kind is the kind of the task.
	Kind string
	// Column is "payload" or "result", or "step:" or "cursor:" and the name of a step (package steps). A schedule's
	// payload has the same Place as the payloads of its tasks.
	Column string
	// TaskID is the ID of the task that the data belongs to. It is 0 for a payload, which
	// is encoded before its task has an ID.
	TaskID int64
}

// payloadOf returns the place of the payloads of a kind.
func payloadOf(kind string) Place { return Place{Kind: kind, Column: "payload"} }

// resultOf returns the place of a task's result.
func resultOf(kind string, id int64) Place { return Place{Kind: kind, Column: "result", TaskID: id} }

// encode returns the JSON to store for a payload or a result, and an error if the server would not take it.
func (q *Queue) encode(p Place, data []byte) (string, error) {
	stored, err := encode(q.cfg.Codec, p, data)
	if err == nil {
		if err = q.store.CheckSize(len(stored)); err != nil {
			err = invalid("%s: %w", p.Column, err)
		}
	}
	return stored, err
}

// encode returns what a codec makes of data. A nil codec changes nothing.
func encode(c Codec, p Place, data []byte) (string, error) {
	if c == nil {
		return string(data), nil
	}
	stored, err := c.Encode(p, data)
	if err != nil {
		return "", fmt.Errorf("encode with the codec: %w", err)
	}
	if !json.Valid(stored) {
		return "", invalid("the codec returned %.40q: must be JSON", stored)
	}
	if len(stored) > maxStored {
		return "", invalid("the codec returned %d bytes: must be at most %d", len(stored), maxStored)
	}
	if err := storable.Check(stored); err != nil {
		return "", invalid("the text that the codec returned: %w", err)
	}
	return string(stored), nil
}

// maxStored is the greatest length of what a codec returns: twice the greatest MaxPayload.
const maxStored = 128 << 20

// decode returns the JSON of a stored payload or result, or nil if none is stored.
func decode(c Codec, p Place, stored []byte) ([]byte, error) {
	if c == nil || stored == nil {
		return stored, nil
	}
	data, err := c.Decode(p, stored)
	if err != nil {
		return nil, fmt.Errorf("decode with the codec: %w", err)
	}
	return data, nil
}

// toStore returns the JSON of a payload or a result, of most bytes at most.
func toStore(what string, v any, most int) ([]byte, error) {
	data, err := storable.JSON(v)
	if err == nil && len(data) > most {
		err = fmt.Errorf("%d bytes: must be at most %d (Config.MaxPayload)", len(data), most)
	}
	if err != nil {
		return nil, invalid("%s: %w", what, err)
	}
	return data, nil
}
