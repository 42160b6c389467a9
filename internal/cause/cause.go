// Package cause finds the causes that the texts of errors have in common.
package cause

import (
	"regexp"
	"strings"
)

// maxLength is the greatest number of characters of a cause.
const maxLength = 200

// varying matches the parts of errors that differ from one occurrence to the next: quoted texts,
// UUIDs, and words with digits. An apostrophe inside a word quotes nothing.
var varying = regexp.MustCompile(`"[^"]*"|\B'[^']*'|` + "`[^`]*`" + `|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|[\p{L}_]*[0-9][\p{L}0-9_]*`)

// A status of HTTP or SMTP with which a server refuses a request is part of the cause. It has a word or
// a colon before it, or a reason after it.
var (
	httpError    = regexp.MustCompile(`^[45][0-9]{2}$`)
	statusBefore = regexp.MustCompile(`(?i)(?::|status|code|http|answered|returned)[ :=]*$`)
	reasonAfter  = regexp.MustCompile(`^ [A-Z][a-z]`)
)

// Of returns the text of an error with "…" instead of the parts that differ from one occurrence to
// the next: numbers, identifiers with digits, and quoted parts. Only its first line counts.
//
//	dial tcp 10.0.0.7:5432: connection refused    dial tcp ….….….…:…: connection refused
//	no order "4711" of customer 8f14e45f          no order … of customer …
//	order 7: 503 Service Unavailable              order …: 503 Service Unavailable
func Of(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = strings.ToValidUTF8(first, "…")
	var b strings.Builder
	end := 0
	for _, at := range varying.FindAllStringIndex(first, -1) {
		b.WriteString(first[end:at[0]])
		if part := first[at[0]:at[1]]; httpError.MatchString(part) && (statusBefore.MatchString(first[:at[0]]) || reasonAfter.MatchString(first[at[1]:])) {
			b.WriteString(part)
		} else {
			b.WriteString("…")
		}
		end = at[1]
	}
	b.WriteString(first[end:])
	runes := []rune(b.String())
	if len(runes) > maxLength {
		runes = append(runes[:maxLength], '…')
	}
	return string(runes)
}
