package storable

import "strings"

// MaxText is the greatest number of bytes of a text that [Text] keeps.
const MaxText = 16 << 10

// Text makes a text storable on every engine: valid UTF-8, without NUL, and cut after
// [MaxText].
func Text(text string) string {
	if len(text) > MaxText {
		text = text[:MaxText] + "…" // a copy, so that the whole text can be freed
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
