// Package uniquekey computes the unique keys of tasks, and merges tasks of one call that have the same
// key.
package uniquekey

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/falldue/falldue/internal/storable"
)

// By selects the properties that tasks with equal unique keys share, in addition to their kind.
type By struct {
	Form   Form
	Fields []string // of ByFields
	Key    string   // of ByKey
}

// Form is a form of By.
type Form int

// The forms of By, which the public package documents.
const (
	ByNothing Form = iota
	ByArgs
	ByFields
	ByKind
	ByKey
)

// Hash returns the unique key of a task of a kind, or why there is none. payload is the JSON of args,
// before a codec encodes it. secret, unless it is nil, is the codec's hash.
func (b By) Hash(kind string, args any, payload []byte, secret func([]byte) []byte) (string, error) {
	data := withPart(nil, []byte(kind))
	switch b.Form {
	case ByNothing:
		return "", errors.New("By is not set: must be ByArgs, ByFields, ByKind or ByKey")
	case ByArgs:
		data = withPart(withPart(data, []byte("args")), payload)
	case ByKind:
		data = withPart(data, []byte("kind"))
	case ByKey:
		if b.Key == "" {
			return "", errors.New("ByKey of an empty text: must not be empty")
		}
		data = withPart(withPart(data, []byte("key")), []byte(b.Key))
	case ByFields:
		fields, err := fieldsOf(b.Fields, args, payload)
		if err != nil {
			return "", err
		}
		data = withPart(data, []byte("fields"))
		for _, name := range slices.Compact(slices.Sorted(slices.Values(b.Fields))) {
			data = withPart(withPart(data, []byte(name)), fields[name]) // only a missing field has an empty value
		}
	}
	if secret != nil {
		switch hash := secret(data); {
		case len(hash) >= sha256.Size:
			data = hash
		case hash != nil:
			return "", fmt.Errorf("a hash of %d bytes from the codec: must have %d bytes or more", len(hash), sha256.Size)
		}
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// withPart appends a part behind its length, so that no two lists of parts are equal.
func withPart(data, part []byte) []byte {
	return append(binary.AppendUvarint(data, uint64(len(part))), part...)
}

// fieldsOf returns the fields of a payload. A name that the payload lacks is an error, unless the type of
// the arguments has such a field for encoding/json, as with omitempty: a misspelt name would make too many
// tasks equal.
func fieldsOf(names []string, args any, payload []byte) (map[string]json.RawMessage, error) {
	if len(names) == 0 {
		return nil, errors.New("ByFields: must name at least one field; to compare only the kind, use ByKind")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("ByFields: the arguments of type %T must be a JSON object", args)
	}
	for _, name := range names {
		if _, ok := fields[name]; ok {
			continue
		}
		known := storable.FieldNames(reflect.TypeOf(args))
		if !slices.Contains(known, name) {
			have := slices.Sorted(maps.Keys(fields))
			have = slices.Compact(slices.Sorted(slices.Values(slices.Concat(have, known))))
			return nil, fmt.Errorf("ByFields: %T has no field %.100q: must be one of %s", args, name, strings.Join(have, ", "))
		}
	}
	return fields, nil
}
