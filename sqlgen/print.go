package sqlgen

import (
	"math"
	"strconv"
	"strings"
)

// How tightly a node's text binds, weakest first. Power binds tighter than a
// minus before it, as in mathematics: -n^2 is -(n^2).
const (
	bindSum = iota
	bindProduct
	bindMinus
	bindPower
	bindAtom
)

func (x Number) String() string { return exprText(x) }
func (x N) String() string      { return exprText(x) }
func (x Delay) String() string  { return exprText(x) }
func (x Const) String() string  { return exprText(x) }
func (x Neg) String() string    { return exprText(x) }
func (x Binary) String() string { return exprText(x) }
func (x Call) String() string   { return exprText(x) }
func (x If) String() string     { return exprText(x) }

// String writes the condition.
func (c Compare) String() string {
	var p printer
	p.compare(c)
	return p.String()
}

func exprText(e Expr) string {
	var p printer
	p.expr(e, bindSum)
	return p.String()
}

type printer struct{ strings.Builder }

// expr writes e, in parentheses where it binds weaker than its place asks for.
func (p *printer) expr(e Expr, place int) {
	if binding(e) < place {
		p.WriteByte('(')
		defer p.WriteByte(')')
	}
	switch e := e.(type) {
	case nil:
		p.WriteString("?") // no formula: Compile refuses it
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
		p.expr(e.X, bindMinus)
	case Binary:
		p.binary(e)
	case Call:
		p.WriteString(string(e.Func))
		p.WriteByte('(')
		for i, arg := range e.Args {
			if i > 0 {
				p.WriteString(", ")
			}
			p.expr(arg, bindSum)
		}
		p.WriteByte(')')
	case If:
		p.WriteString("if(")
		p.compare(e.Cond)
		p.WriteString(", ")
		p.expr(e.Then, bindSum)
		p.WriteString(", ")
		p.expr(e.Else, bindSum)
		p.WriteByte(')')
	}
}

func (p *printer) binary(e Binary) {
	own := binding(e)
	left, right, space := own, own+1, " "
	if e.Op == Power {
		// Right-associative, and a minus may follow it: 2^-n.
		left, right, space = bindAtom, bindMinus, ""
	}
	p.expr(e.X, left)
	p.WriteString(space)
	p.WriteByte(byte(e.Op))
	p.WriteString(space)
	p.expr(e.Y, right)
}

func (p *printer) compare(c Compare) {
	p.expr(c.X, bindSum)
	p.WriteString(" " + string(c.Op) + " ")
	p.expr(c.Y, bindSum)
}

func binding(e Expr) int {
	switch e := e.(type) {
	case Neg:
		return bindMinus
	case Number:
		if math.Signbit(e.Value) {
			return bindMinus
		}
	case Binary:
		switch e.Op {
		case Add, Subtract:
			return bindSum
		case Multiply, Divide:
			return bindProduct
		case Power:
			return bindPower
		}
	}
	return bindAtom
}

// formatNumber writes the shortest digits that read back as v.
func formatNumber(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e17) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
