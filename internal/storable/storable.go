// Package storable encodes values as JSON that every engine keeps unchanged, refuses all other JSON,
// and decodes what was stored.
package storable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// JSON returns the JSON of a value, or an error if an engine would not keep it unchanged.
func JSON(v any) ([]byte, error) {
	data, err := toJSON(v)
	if err == nil {
		err = Check(data)
	}
	return data, err
}

func unmarshal[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// Check returns an error for JSON that some engine would not keep unchanged: with text that was
// not UTF-8, NUL characters, and numbers that the engines' JSON functions cannot read. It reads
// the JSON once.
func Check(p []byte) error {
	if !utf8.Valid(p) {
		return errNotUTF8
	}
	for i := 0; i < len(p); {
		switch c := p[i]; {
		case c == '"':
			n, err := stringEnd(p[i:])
			if err != nil {
				return err
			}
			i += n
		case c == '-' || c >= '0' && c <= '9':
			n := numberEnd(p[i:])
			if err := validNumber(string(p[i : i+n])); err != nil {
				return err
			}
			i += n
		default:
			i++
		}
	}
	return nil
}

// These are the texts that are refused.
var (
	errNotUTF8 = errors.New("text that is not valid UTF-8; encode such data, as base64 for instance")
	errNUL     = errors.New("a NUL character, which PostgreSQL's text cannot hold; encode such data, as base64 for instance")
)

// stringEnd returns the length of the JSON string at the start of p.
func stringEnd(p []byte) (int, error) {
	for i := 1; i < len(p); i++ {
		switch p[i] {
		case '"':
			return i + 1, nil
		case '\\':
			if i+5 < len(p) && p[i+1] == 'u' {
				switch string(p[i+2 : i+6]) {
				case "0000":
					return 0, errNUL
				case "fffd", "FFFD":
					// The first encoding/json writes this escape for bytes that are not UTF-8.
					// It does not escape a genuine U+FFFD.
					return 0, errNotUTF8
				}
			}
			i++
		}
	}
	return len(p), nil
}

func numberEnd(p []byte) int {
	for i, c := range p {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return i
		}
	}
	return len(p)
}

// validNumber refuses numbers other than integers of 64 bits and numbers that a
// double can hold.
func validNumber(text string) error {
	if len(text) < 19 {
		if f, err := strconv.ParseFloat(text, 64); err == nil || f == 0 {
			return nil
		}
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return nil
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return nil
	}
	isInteger := true
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			isInteger = false
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil || isInteger {
		return fmt.Errorf("number %.60s: integers must fit in 64 bits, other numbers in a double; send larger numbers as strings", text)
	}
	return nil
}
