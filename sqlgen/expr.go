package sqlgen

import (
	"errors"
	"fmt"
	"math"
)

// Expr is a formula: a tree of the node types below and nothing else. Its
// values are seconds where they are delays. [Parse] reads one from text,
// String writes it back, and [Compile] makes of it what can be evaluated.
type Expr interface {
	// String writes the formula so that Parse reads the same tree again.
	String() string
	isExpr()
}

// The nodes of a formula.
type (
	// Number is a literal, in its unit.
	Number struct {
		Value float64
		Unit  Unit
	}
	// N is the number of failed attempts, 1 or more.
	N struct{}
	// Delay is the delay at the same n. It stands in jitter formulas only.
	Delay struct{}
	// Const is a constant by its name.
	Const string
	// Neg is -X.
	Neg struct{ X Expr }
	// Binary is X Op Y.
	Binary struct {
		Op   BinaryOp
		X, Y Expr
	}
	// Call is a function of its arguments.
	Call struct {
		Func Func
		Args []Expr
	}
	// If is Then where the condition holds, Else where it does not.
	If struct {
		Cond       Compare
		Then, Else Expr
	}
)

func (Number) isExpr() {}
func (N) isExpr()      {}
func (Delay) isExpr()  {}
func (Const) isExpr()  {}
func (Neg) isExpr()    {}
func (Binary) isExpr() {}
func (Call) isExpr()   {}
func (If) isExpr()     {}

// Compare is the condition of an [If]. Values less than a microsecond apart
// count as equal, so that the last digit of one engine's exp decides nothing.
type Compare struct {
	Op   CompareOp
	X, Y Expr
}

// Unit is the unit of a [Number]; the empty one means seconds, or no unit.
type Unit string

// The units.
const (
	Bare        Unit = ""
	Millisecond Unit = "ms"
	Second      Unit = "s"
	Minute      Unit = "m"
	Hour        Unit = "h"
	Day         Unit = "d"
)

// seconds converts a value in unit u. It divides for milliseconds, since
// 500/1000 is exact where 500*0.001 is not.
func (u Unit) seconds(v float64) float64 {
	switch u {
	case Millisecond:
		return v / 1000
	case Minute:
		return v * 60
	case Hour:
		return v * 3600
	case Day:
		return v * 86400
	}
	return v
}

// The constants.
const (
	Pi Const = "pi"
	E  Const = "e"
)

// BinaryOp is an arithmetic operator.
type BinaryOp byte

// The arithmetic operators. A division by 0 gives 0. Power is pow: see [Pow].
const (
	Add      BinaryOp = '+'
	Subtract BinaryOp = '-'
	Multiply BinaryOp = '*'
	Divide   BinaryOp = '/'
	Power    BinaryOp = '^'
)

// CompareOp is a comparison.
type CompareOp string

// The comparisons.
const (
	Less         CompareOp = "<"
	LessEqual    CompareOp = "<="
	Greater      CompareOp = ">"
	GreaterEqual CompareOp = ">="
	Equal        CompareOp = "=="
	NotEqual     CompareOp = "!="
)

// Func is a function of the language.
type Func string

// The functions. Each has a value everywhere: where mathematics has none, the
// argument counts as the nearest one that has.
const (
	// Min is the least of two or more values.
	Min Func = "min"
	// Max is the greatest of two or more values.
	Max Func = "max"
	// Pow is the first argument to the power of the second. A negative base
	// counts as 0, except under a constant whole exponent: any even one, and
	// an odd one up to 15. Zero to a negative constant is 0, as a division by
	// 0 is; where the exponent varies and may be negative, a base below
	// 1e-100 counts as 1e-100.
	Pow Func = "pow"
	// Exp is e to the power of its argument.
	Exp Func = "exp"
	// Ln is the natural logarithm; an argument below 1e-100 counts as 1e-100.
	Ln Func = "ln"
	// Log10 is the decimal logarithm; an argument below 1e-100 counts as
	// 1e-100.
	Log10 Func = "log10"
	// Sqrt is the square root; a negative argument counts as 0.
	Sqrt Func = "sqrt"
	// Atan is the inverse tangent, in radians.
	Atan Func = "atan"
	// Floor rounds down; a value less than a microsecond below a whole number
	// counts as that number.
	Floor Func = "floor"
	// Ceil rounds up; a value less than a microsecond above a whole number
	// counts as that number.
	Ceil Func = "ceil"
	// Abs is the absolute value.
	Abs Func = "abs"
)

// arity is how many arguments each function takes; -2 stands for two or more.
var arity = map[Func]int{
	Min: -2, Max: -2, Pow: 2, Exp: 1, Ln: 1, Log10: 1, Sqrt: 1, Atan: 1, Floor: 1, Ceil: 1, Abs: 1,
}

// takes reports whether f takes count arguments, and says how many it takes.
func (f Func) takes(count int) (ok bool, want string) {
	switch n := arity[f]; n {
	case -2:
		return count >= 2, "2 or more arguments"
	case 1:
		return count == 1, "1 argument"
	default:
		return count == n, fmt.Sprintf("%d arguments", n)
	}
}

// Limits on a formula, whether parsed or built. They keep a formula from
// anybody cheap to read, to evaluate and to render.
const (
	// MaxText is the longest text of a formula, in bytes.
	MaxText = 4096
	// MaxDepth is how deep a tree may be nested; SQLite allows an expression
	// 1000 levels, of which one level here takes up to six.
	MaxDepth = 100
	// MaxNodes is how many nodes a tree may have.
	MaxNodes = 512
)

// check reports the first thing that keeps e from being a formula: a node
// that is missing, a literal out of range, an unknown operator or function,
// Delay outside a jitter, a tree beyond [MaxDepth] or [MaxNodes].
func check(e Expr, jitter bool) error {
	c := checker{jitter: jitter}
	c.expr(e, 1)
	return c.err
}

type checker struct {
	jitter bool
	nodes  int
	err    error
}

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) expr(e Expr, depth int) {
	if c.nodes++; c.nodes > MaxNodes {
		c.failf("the formula has more than %d nodes", MaxNodes)
	}
	if depth > MaxDepth {
		c.failf("the formula is nested more than %d deep", MaxDepth)
	}
	if c.err != nil {
		return
	}
	switch e := e.(type) {
	case nil:
		c.failf("the formula lacks an operand")
	case Number:
		c.number(e)
	case N:
	case Delay:
		if !c.jitter {
			c.err = errDelay
		}
	case Const:
		if e != Pi && e != E {
			c.failf("unknown constant %q; the constants are pi and e", string(e))
		}
	case Neg:
		c.expr(e.X, depth+1)
	case Binary:
		switch e.Op {
		case Add, Subtract, Multiply, Divide, Power:
		default:
			c.failf("unknown operator %q; the operators are + - * / ^", string(e.Op))
		}
		c.expr(e.X, depth+1)
		c.expr(e.Y, depth+1)
	case Call:
		if _, known := arity[e.Func]; !known {
			c.failf("unknown function %q; the functions are %s", string(e.Func), functionNames)
		}
		if ok, want := e.Func.takes(len(e.Args)); !ok {
			c.failf("%s takes %s, not %d", e.Func, want, len(e.Args))
		}
		for _, arg := range e.Args {
			c.expr(arg, depth+1)
		}
	case If:
		switch e.Cond.Op {
		case Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual:
		default:
			c.failf("unknown comparison %q; the comparisons are < <= > >= == !=", string(e.Cond.Op))
		}
		for _, x := range []Expr{e.Cond.X, e.Cond.Y, e.Then, e.Else} {
			c.expr(x, depth+1)
		}
	}
}

func (c *checker) number(e Number) {
	switch e.Unit {
	case Bare, Millisecond, Second, Minute, Hour, Day:
	default:
		c.failf("unknown unit %q; the units are ms, s, m, h, d", string(e.Unit))
	}
	if !inRange(e.Unit.seconds(e.Value)) {
		c.failf("the number %v%s is out of range; numbers are 0, or from 1e-100 to 1e100", e.Value, e.Unit)
	}
}

// inRange reports whether a literal is one that the language holds.
func inRange(seconds float64) bool {
	size := math.Abs(seconds)
	return size == 0 || size >= smallest && size <= largest
}

var errDelay = errors.New("delay may be used in a jitter only")

const functionNames = "min, max, pow, exp, ln, log10, sqrt, atan, floor, ceil, abs, if"
