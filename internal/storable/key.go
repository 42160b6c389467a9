package storable

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxKey is the greatest length of a key that is stored as it is.
	maxKey = 128
	// maxValue is the greatest length of a part's value that is stored as it is.
	maxValue = 40
	// hashed begins a key, or the value of a part, that is stored as its hash.
	hashed = "#"
)

var partName = regexp.MustCompile("^[A-Za-z][A-Za-z0-9_.-]{0,31}$")

// CheckPart returns why a text cannot be the name of a part of keys, or nil.
func CheckPart(name string) error {
	if !partName.MatchString(name) {
		return fmt.Errorf("part %.101q: must be 1 to 32 of A-Z a-z 0-9 . _ -, the first a letter", name)
	}
	return nil
}

// KeyOf returns the key that has one part, a name and a value. Keys with several parts have a slash between
// them. A slash in a value would begin another part, so that such a value becomes its hash, as a long one does.
func KeyOf(name, value string) string {
	if len(value) > maxValue || !plain(value) || strings.Contains(value, "/") {
		sum := sha256.Sum256([]byte(value))
		value = hashed + base64.RawURLEncoding.EncodeToString(sum[:16])
	}
	return name + "=" + value
}

// plain reports whether a text is stored as it is, unless it is too long.
func plain(text string) bool {
	return !strings.HasPrefix(text, hashed) && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Key returns a task's key as the table has it: lanes need a short text without spaces.
func Key(key string) string {
	if len(key) <= maxKey && plain(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}

// KeyAgain is like [Key], and leaves a hash that Key has returned as it is.
func KeyAgain(key string) string {
	if strings.HasPrefix(key, hashed) && len(key) == len(Key(hashed)) {
		return key
	}
	return Key(key)
}

// Part returns the value of a key's part, and false if the key has no such part.
func Part(key, name string) (value string, ok bool) {
	for part := range strings.SplitSeq(key, "/") {
		if n, value, ok := strings.Cut(part, "="); ok && n == name {
			return value, true
		}
	}
	return "", false
}

// Parts calls yield with the name and the value of each part of a key.
func Parts(key string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for part := range strings.SplitSeq(key, "/") {
			if name, value, ok := strings.Cut(part, "="); ok && partName.MatchString(name) && !yield(name, value) {
				return
			}
		}
	}
}

// FirstPart returns the first part of a key, with its name, or the key if it does not begin with a part.
func FirstPart(key string) string {
	if first, _, more := strings.Cut(key, "/"); more && strings.Contains(first, "=") {
		return first
	}
	return key
}

// HasParts reports whether a key has parts only.
func HasParts(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if name, _, ok := strings.Cut(part, "="); !ok || !partName.MatchString(name) {
			return false
		}
	}
	return true
}

// Selects reports whether a key selects the tasks with another one: if they are the same, or if the first has
// parts and the other one has the same parts in one piece.
func Selects(key, other string) bool {
	if key == other {
		return true
	}
	return len(key) < len(other) && HasParts(key) && strings.Contains("/"+other+"/", "/"+key+"/")
}

// PolicyKey returns the key of a per-task policy with a text.
func PolicyKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
