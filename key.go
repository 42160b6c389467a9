package falldue

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// maxKey is the greatest length of a key that is stored as it is.
const maxKey = 64

// hashedKey begins a key that is stored as its hash.
const hashedKey = "#"

// storedKey returns a task's key as the table has it: lanes need a short text without
// spaces.
func storedKey(key string) string {
	visible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(key) <= maxKey && !strings.HasPrefix(key, hashedKey) && !strings.ContainsFunc(key, func(r rune) bool { return !visible(r) }) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashedKey + base64.RawURLEncoding.EncodeToString(sum[:])
}
