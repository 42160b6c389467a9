package falldue

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/storable"
)

// Hasher is a [Codec] that also hashes what tasks are unique by, with a secret, so that
// nobody can find it by trying out what it may be. Hash returns 32 bytes or more, which
// depend on data and the secret alone: processes with other secrets do not see each other's
// tasks as equal. Without a Hasher the unique key of a task is a SHA-256.
type Hasher interface {
	Codec
	Hash(data []byte) []byte
}

const minUniqueFor = time.Millisecond

// hash returns the unique key of a task of a kind, or why there is none. payload is the JSON
// of args, as it is before a codec encodes it.
func (u Unique) hash(c Codec, kind string, args any, payload []byte) (string, error) {
	if u.OnConflict < ConflictSkip || u.OnConflict > ConflictReplace {
		return "", invalid("OnConflict %d; allowed are ConflictSkip, ConflictFail and ConflictReplace", u.OnConflict)
	}
	if u.For != 0 && (u.For < minUniqueFor || u.For > maxDelay) {
		return "", invalid("For %v: must be %v to %s", u.For, minUniqueFor, longestDelay)
	}
	if u.For != 0 && u.WhileWaiting {
		return "", invalid("For %v and WhileWaiting: set only one", u.For)
	}
	data := withPart(nil, []byte(kind))
	switch u.By.form {
	case byNothing:
		return "", invalid("Unique without By; set ByArgs, ByFields, ByKind or ByKey")
	case byArgs:
		data = withPart(withPart(data, []byte("args")), payload)
	case byKind:
		data = withPart(data, []byte("kind"))
	case byKey:
		if u.By.key == "" {
			return "", invalid("ByKey of an empty text; allowed is any other")
		}
		data = withPart(withPart(data, []byte("key")), []byte(u.By.key))
	case byFields:
		fields, err := fieldsOf(u.By.fields, args, payload)
		if err != nil {
			return "", err
		}
		data = withPart(data, []byte("fields"))
		for _, name := range slices.Compact(slices.Sorted(slices.Values(u.By.fields))) {
			data = withPart(withPart(data, []byte(name)), fields[name]) // no value is empty but that of a field that is left out
		}
	}
	if h, ok := c.(Hasher); ok {
		data = h.Hash(data)
		if len(data) < sha256.Size {
			return "", invalid("a hash of %d bytes of the codec; allowed are %d and more", len(data), sha256.Size)
		}
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// withPart appends a part behind its length, so that no two lists of parts are equal.
func withPart(data, part []byte) []byte {
	return append(binary.AppendUvarint(data, uint64(len(part))), part...)
}

// fieldsOf returns the fields of a payload. It is an error if one of names is missing, unless
// the type of the arguments has such a field for encoding/json, as with omitempty: a misspelt name
// would make too many tasks equal.
func fieldsOf(names []string, args any, payload []byte) (map[string]json.RawMessage, error) {
	if len(names) == 0 {
		return nil, invalid("ByFields without a name; ByKind makes tasks unique by their kind alone")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields == nil {
		return nil, invalid("ByFields of arguments of type %T, which are no JSON object", args)
	}
	for _, name := range names {
		if _, ok := fields[name]; ok {
			continue
		}
		known := storable.FieldNames(reflect.TypeOf(args))
		if !slices.Contains(known, name) {
			have := slices.Sorted(maps.Keys(fields))
			have = slices.Compact(slices.Sorted(slices.Values(slices.Concat(have, known))))
			return nil, invalid("field %.100q in ByFields; the arguments, of type %T, have %s", name, args, strings.Join(have, ", "))
		}
	}
	return fields, nil
}
