package sqlgen

import "math"

// Simplify shortens a formula. It computes operators and functions of integers without a unit if the result is an
// integer, too. It removes additions and subtractions of 0, and factors, divisors and exponents of 1, and replaces a
// factor of -1 on the left by a minus sign. An if with a condition that is true for every n, or for none, becomes the
// chosen branch.
// Such parts remain after the parameters of a preset have been replaced with their values. Everything else stays
// unchanged. The result has the same value as e at every n. If e is not a valid formula, Simplify returns e.
func Simplify(e Expr) Expr {
	if check(e, true) != nil {
		return e
	}
	return simplify(e)
}

func simplify(e Expr) Expr {
	switch e := e.(type) {
	case Neg:
		return Neg{simplify(e.X)}
	case Binary:
		return simplifyBinary(Binary{e.Op, simplify(e.X), simplify(e.Y)})
	case Call:
		args := make([]Expr, len(e.Args))
		for i, arg := range e.Args {
			args[i] = simplify(arg)
		}
		return fold(Call{e.Func, args}, args...)
	case If:
		return simplifyIf(If{Compare{e.Cond.Op, simplify(e.Cond.X), simplify(e.Cond.Y)}, simplify(e.Then), simplify(e.Else)})
	}
	return e
}

func simplifyBinary(e Binary) Expr {
	x, y := integerValue(e.X), integerValue(e.Y)
	switch {
	case y == 0 && (e.Op == Add || e.Op == Subtract), y == 1 && e.Op != Add && e.Op != Subtract:
		return e.X
	case x == 0 && e.Op == Add, x == 1 && e.Op == Multiply:
		return e.Y
	case x == -1 && e.Op == Multiply:
		return Neg{e.Y}
	}
	return fold(e, e.X, e.Y)
}

func simplifyIf(e If) Expr {
	// The delay is not known here: it can be any value from 0 to MaxDelay.
	g := guard{delay: &node{op: opN, bounds: bounds{lo: 0, hi: MaxDelay, minNonzero: minAfterFlush}}}
	chosen := g.expr(If{e.Cond, Number{Value: 1}, Number{}})
	switch {
	case isNumber(chosen, 1):
		return e.Then
	case isNumber(chosen, 0):
		return e.Else
	}
	return e
}

// fold returns the value of e if the operands are integers without a unit and
// the value is an integer too, and else e.
func fold(e Expr, operands ...Expr) Expr {
	for _, x := range operands {
		if math.IsNaN(integerValue(x)) {
			return e
		}
	}
	v, ok := Value(e)
	switch {
	case !ok || v != math.Trunc(v) || math.Abs(v) > maxInteger:
		return e
	case v < 0:
		return Neg{Number{Value: -v}}
	}
	return Number{Value: v}
}

// integerValue returns the value of an integer without a unit, and NaN for any
// other expression.
func integerValue(e Expr) float64 {
	switch e := e.(type) {
	case Number:
		if e.Unit == Bare && e.Value == math.Trunc(e.Value) {
			return e.Value
		}
	case Neg:
		return -integerValue(e.X)
	}
	return math.NaN()
}
