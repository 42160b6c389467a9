package sqlgen

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokNumber
	tokName
	tokSymbol
)

type token struct {
	kind   tokenKind
	pos    int
	text   string
	number Number // only if kind is tokNumber
}

func (t token) String() string {
	if t.kind == tokEnd {
		return "the end"
	}
	return strconv.Quote(t.text)
}

// lexer splits a formula into tokens. It keeps its first error. After an error,
// each further token is the end of the text.
type lexer struct {
	text string
	pos  int
	err  *SyntaxError
}

func (l *lexer) fail(pos int, msg string) {
	if l.err == nil {
		l.err = &SyntaxError{l.text, pos, msg}
	}
}

func (l *lexer) next() token {
	for l.pos < len(l.text) && isSpace(l.text[l.pos]) {
		l.pos++
	}
	start := l.pos
	if l.err != nil || start == len(l.text) {
		return token{kind: tokEnd, pos: start}
	}
	switch c := l.text[start]; {
	case isDigit(c) || c == '.':
		return l.number()
	case isLetter(c):
		l.skip(isNamePart)
		return token{kind: tokName, pos: start, text: l.text[start:l.pos]}
	case c == '<' || c == '>' || c == '=' || c == '!':
		l.pos++
		if l.pos < len(l.text) && l.text[l.pos] == '=' {
			l.pos++
		}
	default:
		_, size := utf8.DecodeRuneInString(l.text[start:])
		l.pos += size
	}
	return token{kind: tokSymbol, pos: start, text: l.text[start:l.pos]}
}

// number reads a literal with its unit. Several literals without a space
// between them, as in 1h30m, are one literal in the last unit.
func (l *lexer) number() token {
	start := l.pos
	total, unit := l.quantity()
	for unit != Bare && l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		v, next := l.quantity()
		if next == Bare {
			l.fail(l.pos, fmt.Sprintf("found %q, expected a unit after its last digits", l.text[start:l.pos]))
		}
		// Converting to seconds first makes 1h30m exactly 90 minutes.
		total, unit = (unit.seconds(total)+next.seconds(v))/next.seconds(1), next
	}
	text := l.text[start:l.pos]
	if !inRange(unit.seconds(total)) {
		l.fail(start, fmt.Sprintf("the number %s is out of range; a number must be 0, or from 1e-100 to 1e100", text))
	}
	if l.err != nil {
		return token{kind: tokEnd, pos: start}
	}
	return token{tokNumber, start, text, Number{total, unit}}
}

// quantity reads digits, and the unit after them if there is one.
func (l *lexer) quantity() (float64, Unit) {
	start := l.pos
	l.skip(isDigit)
	if l.pos < len(l.text) && l.text[l.pos] == '.' {
		l.pos++
		l.skip(isDigit)
	}
	l.exponent()
	digits := l.text[start:l.pos]
	// A number that is too large for a double becomes infinity, which is out of range.
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		l.fail(start, fmt.Sprintf("found %q, expected a number such as 15, 1.5 or 2.5e-3", digits))
	}
	start = l.pos
	l.skip(isLetter)
	unit := Unit(l.text[start:l.pos])
	switch unit {
	case Bare, Millisecond, Second, Minute, Hour, Day:
	default:
		l.fail(start, fmt.Sprintf("unknown unit %q; the units are ms, s, m, h, d", string(unit)))
	}
	return v, unit
}

// exponent reads e5, e+5 or e-5. It reads nothing if no digit follows the e.
func (l *lexer) exponent() {
	at := l.pos
	if at == len(l.text) || l.text[at] != 'e' {
		return
	}
	at++
	if at < len(l.text) && (l.text[at] == '+' || l.text[at] == '-') {
		at++
	}
	if at < len(l.text) && isDigit(l.text[at]) {
		l.pos = at
		l.skip(isDigit)
	}
}

func (l *lexer) skip(class func(byte) bool) {
	for l.pos < len(l.text) && class(l.text[l.pos]) {
		l.pos++
	}
}

func isSpace(c byte) bool    { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isLetter(c byte) bool   { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func isNamePart(c byte) bool { return isLetter(c) || isDigit(c) }
