package falldue

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// matcher returns a function that reports whether a payload matches a text, see
// [TaskFilter]. It is nil for "".
func matcher(text string) func(payload []byte) bool {
	if text == "" {
		return nil
	}
	if fields, ok := parseJSON([]byte(text)).(map[string]any); ok {
		return func(payload []byte) bool { return contains(parseJSON(payload), fields) }
	}
	return func(payload []byte) bool {
		var compact bytes.Buffer
		return json.Compact(&compact, payload) == nil && strings.Contains(compact.String(), text)
	}
}

// parseJSON returns the value of a JSON text with its numbers as they are written, or an
// error.
func parseJSON(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return err
	}
	return v
}

// contains reports whether a JSON value contains a part: an object its fields, an array
// its elements in any order. Other values are equal.
func contains(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		object, ok := whole.(map[string]any)
		for name, p := range part {
			w, has := object[name]
			ok = ok && has && contains(w, p)
		}
		return ok
	case []any:
		array, ok := whole.([]any)
		for _, p := range part {
			ok = ok && slices.ContainsFunc(array, func(w any) bool { return contains(w, p) })
		}
		return ok
	case json.Number:
		number, ok := whole.(json.Number)
		return ok && equalNumbers(number, part)
	}
	switch whole.(type) {
	case map[string]any, []any:
		return false // which cannot be compared
	}
	return whole == part
}

// equalNumbers compares numbers that may be written in different ways. Some engines write
// them anew. Whole numbers of 64 bits differ although doubles may not.
func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, _, errX := big.ParseFloat(a.String(), 10, 64, big.ToNearestEven)
	y, _, errY := big.ParseFloat(b.String(), 10, 64, big.ToNearestEven)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}
