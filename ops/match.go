package ops

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// matcher returns a function that reports whether a payload matches a text, see
// [Filter]. It is nil for "".
func matcher(text string) func(payload []byte) bool {
	if text == "" {
		return nil
	}
	if fields, ok := parseJSON([]byte(text)).(map[string]any); ok {
		return func(payload []byte) bool { return contains(parseJSON(payload), fields) }
	}
	outside, inside := withoutSpace(text, false), withoutSpace(text, true)
	return func(payload []byte) bool {
		var compact bytes.Buffer
		if json.Compact(&compact, payload) != nil {
			return false
		}
		whole := compact.String()
		return strings.Contains(whole, text) || occurs(whole, outside, false) || occurs(whole, inside, true)
	}
}

// withoutSpace returns a part of a JSON text, which begins inside of a string or outside, without
// the white space outside of strings that need not be there.
func withoutSpace(text string, inside bool) string {
	const space = " \t\r\n"
	var part strings.Builder
	in := inStrings(text, inside)
	for i := 0; i < len(text); {
		next := i + len(text[i:]) - len(strings.TrimLeft(text[i:], space))
		switch {
		case in[i] || next == i:
			next = i + 1
			part.WriteByte(text[i])
		case i > 0 && next < len(text) && !strings.ContainsAny(text[i-1:i]+text[next:next+1], ",:[]{}"):
			part.WriteString(text[i:next]) // two words that JSON does not have
		}
		i = next
	}
	return part.String()
}

// inStrings returns which bytes of a part of a JSON text are inside of strings. A quote that ends
// one is.
func inStrings(text string, inside bool) []bool {
	in := make([]bool, len(text))
	for i := 0; i < len(text); i++ {
		in[i] = inside
		switch {
		case inside && text[i] == '\\' && i+1 < len(text):
			i++
			in[i] = true
		case text[i] == '"':
			inside = !inside
		}
	}
	return in
}

// occurs reports whether a part occurs in a JSON text and begins inside of a string, or outside.
func occurs(whole, part string, inside bool) bool {
	if part == "" || !strings.Contains(whole, part) {
		return false
	}
	in := inStrings(whole, false)
	for at := 0; ; at++ {
		i := strings.Index(whole[at:], part)
		if i < 0 {
			return false
		}
		if at += i; in[at] == inside {
			return true
		}
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
// them anew. Whole numbers of 64 bits differ although their doubles can be equal.
func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, _, errX := big.ParseFloat(a.String(), 10, 64, big.ToNearestEven)
	y, _, errY := big.ParseFloat(b.String(), 10, 64, big.ToNearestEven)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}
