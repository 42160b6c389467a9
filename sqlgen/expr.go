package sqlgen

import (
	"errors"
	"fmt"
	"math"
)

// Expr is a formula, as a tree of the node types below. No other types
// implement it. A delay or a jitter is in seconds. [Parse] parses an Expr from
// text, String formats it as text, and [Compile] prepares it for evaluation.
type Expr interface {
	// String returns the formula as text, which Parse parses into the same
	// tree.
	String() string
	isExpr()
}

// The nodes of a formula.
type (
	// Number is a literal with its unit.
	Number struct {
		Value float64
		Unit  Unit
	}
	// N is the number of failed attempts, 1 or more.
	N struct{}
	// Delay is the delay at the same n. It is allowed only in jitter formulas.
	Delay struct{}
	// Const is a named constant.
	Const string
	// Neg is -X.
	Neg struct{ X Expr }
	// Binary is X Op Y.
	Binary struct {
		Op   BinaryOp
		X, Y Expr
	}
	// Call is a call of a function with its arguments.
	Call struct {
		Func Func
		Args []Expr
	}
	// If is Then if Cond is met, and Else otherwise.
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

// Compare is the condition of an [If]. Values that differ by less than 1e-6 count as equal, so it does not
// matter how an engine rounds the last digit of a function such as exp.
type Compare struct {
	Op   CompareOp
	X, Y Expr
}

// Unit is the unit of a [Number]. The empty unit means seconds, or no unit.
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

// seconds converts a value in unit u to seconds. It divides milliseconds,
// because 500/1000 is exact and 500*0.001 is not.
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

// The arithmetic operators. A division by 0 gives 0. Power is the function [Pow].
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

// The functions. Each function has a value for every argument. For an argument for which mathematics defines no value,
// the function uses the nearest argument with a value, unless its comment says otherwise.
const (
	// Min is the smallest of two or more values.
	Min Func = "min"
	// Max is the largest of two or more values.
	Max Func = "max"
	// Pow is the first argument to the power of the second. A negative base
	// counts as 0, unless the exponent is a constant that is an even integer,
	// or an odd integer up to 15. Zero to the power of a negative constant is
	// 0, like a division by 0. If the exponent is not a constant and may be
	// negative, a base below 1e-100 counts as 1e-100.
	Pow Func = "pow"
	// Exp is e to the power of its argument.
	Exp Func = "exp"
	// Ln is the natural logarithm. An argument below 1e-100 counts as 1e-100.
	Ln Func = "ln"
	// Log10 is the decimal logarithm. An argument below 1e-100 counts as
	// 1e-100.
	Log10 Func = "log10"
	// Sqrt is the square root. A negative argument counts as 0.
	Sqrt Func = "sqrt"
	// Atan is the inverse tangent, in radians.
	Atan Func = "atan"
	// Floor rounds down to an integer. An argument that is less than 1e-6 below an
	// integer counts as that integer.
	Floor Func = "floor"
	// Ceil rounds up to an integer. An argument that is less than 1e-6 above an
	// integer counts as that integer.
	Ceil Func = "ceil"
	// Abs is the absolute value.
	Abs Func = "abs"
)

// arity is the number of arguments of each function; -2 means two or more.
var arity = map[Func]int{
	Min: -2, Max: -2, Pow: 2, Exp: 1, Ln: 1, Log10: 1, Sqrt: 1, Atan: 1, Floor: 1, Ceil: 1, Abs: 1,
}

// takes reports whether f takes count arguments. want is the number of
// arguments that f takes, for an error.
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

// Limits on a formula, whether parsed or built in Go. They bound the cost of
// parsing, evaluating and rendering a formula from an untrusted source.
const (
	// MaxText is the largest size of a formula's text, in bytes.
	MaxText = 4096
	// MaxDepth is the largest depth of a tree. SQLite allows an expression of
	// 1000 levels, and one level of a tree takes up to six of them.
	MaxDepth = 100
	// MaxNodes is the largest number of nodes of a tree.
	MaxNodes = 512
)

// check returns an error for the first part of e that is invalid: a missing
// operand, a literal out of range, an unknown operator or function, Delay in a
// formula that is not a jitter, or a tree larger than [MaxDepth] or [MaxNodes].
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
		c.failf("the formula has a missing operand")
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
		c.failf("the number %v%s is out of range; a number must be 0, or from 1e-100 to 1e100", e.Value, e.Unit)
	}
}

// inRange reports whether a literal is 0, or its size is allowed.
func inRange(seconds float64) bool {
	size := math.Abs(seconds)
	return size == 0 || size >= smallest && size <= largest
}

var errDelay = errors.New("delay may be used only in a jitter")

const functionNames = "min, max, pow, exp, ln, log10, sqrt, atan, floor, ceil, abs, if"
