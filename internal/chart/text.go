package chart

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	textSize  = 13.0 // pixels
	titleSize = 17.0
	// leading is the height of a line, and descent the part of it below the baseline, as
	// shares of the size. The tallest common fonts need 1.37 and 0.3.
	leading = 1.4
	descent = 0.31
)

// widths has the widths of characters as shares of the size: the widest among common fonts
// without serifs. Most are from Verdana and DejaVu Sans.
var widths = func() (list [utf8.RuneSelf]float64) {
	for i := range list {
		list[i] = 0.65
	}
	for width, text := range map[float64]string{
		0.3: "ijl'", 0.41: " !,.ft", 0.47: "()[]/\\:;rI\"", 0.57: "JcszL|",
		0.7: "ABEKPSVXYZ", 0.74: "CR", 0.8: "DGHNOQU&", 0.85: "#+<=>^~w", 0.91: "M", 1: "Wm", 1.08: "%@",
	} {
		for _, r := range text {
			list[r] = width
		}
	}
	return list
}()

// TextWidth returns the room for a text in one line, in pixels: what it has in the widest
// common font.
func TextWidth(text string, size float64) float64 {
	total := 0.0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			total += widths[r]
		case r < 0x10000:
			total += 1.08 // Œ
		default: // emoji
			total += 1.4
		}
	}
	return total * size
}

// shown reports whether a character has a picture, and leaves the order of others as it is.
func shown(r rune) bool { return unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) }

const ellipsis = "…"

// fit cuts a text to a width.
func fit(text string, size, width float64) string {
	if text = clean(text); TextWidth(text, size) <= width+0.01 {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && TextWidth(string(runes)+ellipsis, size) > width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + ellipsis
}

// wrap divides a text into lines of a width, most at the most. It breaks a word that is longer
// than a line, and cuts the last line.
func wrap(text string, size, width float64, most int) (lines []string) {
	rest := strings.TrimSpace(clean(text))
	for rest != "" {
		if len(lines) == most-1 {
			return append(lines, fit(rest, size, width))
		}
		end, space := 0, 0
		for i, r := range rest {
			if TextWidth(rest[:i+utf8.RuneLen(r)], size) > width {
				break
			}
			if end = i + utf8.RuneLen(r); r == ' ' {
				space = i
			}
		}
		if end < len(rest) && rest[end] != ' ' && space > 0 {
			end = space
		}
		lines, rest = append(lines, strings.TrimSpace(rest[:end])), strings.TrimSpace(rest[end:])
	}
	return lines
}
