// Package cause finds the causes that the texts of errors have in common.
package cause

import "strings"

// maxLength is how many bytes of a cause are kept.
const maxLength = 200

// Of returns the text of an error without the parts that differ from one occurrence to the
// next: numbers and identifiers with digits become "#", and quoted parts become "…" in their
// quotes. Only its first line counts.
//
//	dial tcp 10.0.0.7:5432: connection refused    dial tcp #.#.#.#:#: connection refused
//	no order "4711-a" of customer 8f14e45f        no order "…" of customer #
func Of(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < maxLength; {
		if n := quoted(text, i); n > 0 {
			b.WriteByte(text[i])
			b.WriteString("…")
			b.WriteByte(text[i+n-1])
			i += n
			continue
		}
		n, digits := word(text[i:])
		switch {
		case digits:
			b.WriteByte('#')
		default:
			b.WriteString(text[i : i+max(n, 1)])
		}
		i += max(n, 1)
	}
	return strings.ToValidUTF8(b.String(), "")
}

// word returns the length of the word at the beginning of a text, and reports whether it has
// digits. It is 0 if the text begins with something else.
func word(text string) (n int, digits bool) {
	for ; n < len(text) && inWord(text[n]); n++ {
		digits = digits || '0' <= text[n] && text[n] <= '9'
	}
	return n, digits
}

func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
}

// quoted returns the length of the quoted part that begins at i, with its quotes, or 0. An
// apostrophe inside a word quotes nothing.
func quoted(text string, i int) int {
	c := text[i]
	if c != '"' && c != '`' && c != '\'' || c == '\'' && i > 0 && inWord(text[i-1]) {
		return 0
	}
	end := strings.IndexByte(text[i+1:], c)
	if end < 0 {
		return 0
	}
	return end + 2
}
