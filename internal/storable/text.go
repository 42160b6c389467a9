package storable

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

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

// ASCII makes a text storable in any session, whatever its encoding. In JSON other characters
// become escapes, which mean the same. In other texts each becomes "?".
func ASCII(text string) string {
	escape := json.Valid([]byte(text))
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case escape:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "\\u%04x", unit)
			}
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}
