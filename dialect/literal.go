package dialect

import (
	"math"
	"strconv"
)

// formatFloat writes the shortest text that reads back as the same double,
// with an exponent only where the digits alone would be long.
func formatFloat(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e17) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// signed puts a negative literal in parentheses, so that no operator before
// or behind it reads its sign as its own.
func signed(v float64, text string) string {
	if math.Signbit(v) {
		return "(" + text + ")"
	}
	return text
}

const unknownType = "dialect: Cast to an unknown type"
