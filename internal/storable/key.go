package storable

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	// maxKey is the greatest length of a key that is stored as it is.
	maxKey = 64
	// hashedKey begins a key that is stored as its hash.
	hashedKey = "#"
)

// Key returns a task's key as the table has it: lanes need a short text without spaces.
func Key(key string) string {
	visible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(key) <= maxKey && !strings.HasPrefix(key, hashedKey) && !strings.ContainsFunc(key, func(r rune) bool { return !visible(r) }) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashedKey + base64.RawURLEncoding.EncodeToString(sum[:])
}

// KeyAgain is like [Key], and leaves a hash that Key has returned as it is.
func KeyAgain(key string) string {
	if strings.HasPrefix(key, hashedKey) && len(key) == len(Key(hashedKey)) {
		return key
	}
	return Key(key)
}
