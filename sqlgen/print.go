package sqlgen

import (
	"math"
	"strconv"
	"strings"
)

// The precedence of the operators, lowest first. As in mathematics, a power has
// a higher precedence than a minus before it: -n^2 is -(n^2).
const (
	precSum = iota
	precProduct
	precMinus
	precPower
	precAtom
)

func (x Number) String() string { return exprText(x) }
func (x N) String() string      { return exprText(x) }
func (x Delay) String() string  { return exprText(x) }
func (x Const) String() string  { return exprText(x) }
func (x Neg) String() string    { return exprText(x) }
func (x Binary) String() string { return exprText(x) }
func (x Call) String() string   { return exprText(x) }
func (x If) String() string     { return exprText(x) }

// String returns the condition as text.
func (c Compare) String() string {
	var p printer
	p.compare(c)
	return p.String()
}

func exprText(e Expr) string {
	var p printer
	p.expr(e, precSum)
	return p.String()
}

type printer struct{ strings.Builder }

// expr writes e, in parentheses if its precedence is lower than least.
func (p *printer) expr(e Expr, least int) {
	if precedence(e) < least {
		p.WriteByte('(')
		defer p.WriteByte(')')
	}
	switch e := e.(type) {
	case nil:
		p.WriteString("?") // a missing operand, which Compile rejects
	case Number:
		p.WriteString(formatNumber(e.Value))
		p.WriteString(string(e.Unit))
	case N:
		p.WriteByte('n')
	case Delay:
		p.WriteString("delay")
	case Const:
		p.WriteString(string(e))
	case Neg:
		p.WriteByte('-')
		p.expr(e.X, precMinus)
	case Binary:
		p.binary(e)
	case Call:
		p.WriteString(string(e.Func))
		p.WriteByte('(')
		for i, arg := range e.Args {
			if i > 0 {
				p.WriteString(", ")
			}
			p.expr(arg, precSum)
		}
		p.WriteByte(')')
	case If:
		p.WriteString("if(")
		p.compare(e.Cond)
		p.WriteString(", ")
		p.expr(e.Then, precSum)
		p.WriteString(", ")
		p.expr(e.Else, precSum)
		p.WriteByte(')')
	}
}

func (p *printer) binary(e Binary) {
	own := precedence(e)
	left, right, space := own, own+1, " "
	if e.Op == Power {
		// A power is right-associative, and a minus may follow it: 2^-n.
		left, right, space = precAtom, precMinus, ""
	}
	p.expr(e.X, left)
	p.WriteString(space)
	p.WriteByte(byte(e.Op))
	p.WriteString(space)
	p.expr(e.Y, right)
}

func (p *printer) compare(c Compare) {
	p.expr(c.X, precSum)
	p.WriteString(" " + string(c.Op) + " ")
	p.expr(c.Y, precSum)
}

func precedence(e Expr) int {
	switch e := e.(type) {
	case Neg:
		return precMinus
	case Number:
		if math.Signbit(e.Value) {
			return precMinus
		}
	case Binary:
		switch e.Op {
		case Add, Subtract:
			return precSum
		case Multiply, Divide:
			return precProduct
		case Power:
			return precPower
		}
	}
	return precAtom
}

// formatNumber returns the shortest decimal number that parses as v.
func formatNumber(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e17) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
