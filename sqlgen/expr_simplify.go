package sqlgen

import "math"

// Simplify works out what a formula holds that needs no n, as it does once a
// preset's parameters were put in: arithmetic on whole numbers without a unit,
// additions of 0, factors and exponents of 1, and an if whose condition holds
// for every n or for none. It leaves everything else as it was written. The
// result has the same value at every n. A tree that is no formula is left as
// it is.
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
		return workOut(Call{e.Func, args}, args...)
	case If:
		return simplifyIf(If{Compare{e.Cond.Op, simplify(e.Cond.X), simplify(e.Cond.Y)}, simplify(e.Then), simplify(e.Else)})
	}
	return e
}

func simplifyBinary(e Binary) Expr {
	x, y := wholeNumber(e.X), wholeNumber(e.Y)
	switch {
	case y == 0 && (e.Op == Add || e.Op == Subtract), y == 1 && e.Op != Add && e.Op != Subtract:
		return e.X
	case x == 0 && e.Op == Add, x == 1 && e.Op == Multiply:
		return e.Y
	case x == -1 && e.Op == Multiply:
		return Neg{e.Y}
	}
	return workOut(e, e.X, e.Y)
}

func simplifyIf(e If) Expr {
	// In place of the delay, which is not known here, anything it can be.
	g := guard{delay: &node{op: opN, bounds: bounds{lo: 0, hi: MaxDelay, tiny: leftOver}}}
	chosen := g.expr(If{e.Cond, Number{Value: 1}, Number{}})
	switch {
	case isNumber(chosen, 1):
		return e.Then
	case isNumber(chosen, 0):
		return e.Else
	}
	return e
}

// workOut replaces e by its value if its operands are whole numbers without a
// unit and so is the value.
func workOut(e Expr, operands ...Expr) Expr {
	for _, x := range operands {
		if math.IsNaN(wholeNumber(x)) {
			return e
		}
	}
	v, ok := Value(e)
	switch {
	case !ok || v != math.Trunc(v) || math.Abs(v) > maxWhole:
		return e
	case v < 0:
		return Neg{Number{Value: -v}}
	}
	return Number{Value: v}
}

// wholeNumber is the value of a whole number without a unit, else NaN.
func wholeNumber(e Expr) float64 {
	switch e := e.(type) {
	case Number:
		if e.Unit == Bare && e.Value == math.Trunc(e.Value) {
			return e.Value
		}
	case Neg:
		return -wholeNumber(e.X)
	}
	return math.NaN()
}
