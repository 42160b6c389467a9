package sqlgen

import "math"

// A formula is made total before anything evaluates it: total.go turns the
// tree into another one, of simpler nodes, that has guards wherever an engine
// might raise an error or answer NULL, infinity or NaN. PostgreSQL raises on
// overflow and on underflow, MySQL on overflow, and evaluates the argument of
// least before least can cap it, so guards stand on operands, before the
// operation. Both interpreters, eval.go and render.go, run over this one
// guarded tree, and so they agree by construction.
//
// Guards are put where the bounds of the operands (bounds.go) call for them,
// so a formula that cannot go wrong has none. No guard writes an operand twice:
// the SQL grows with the formula, not exponentially with its depth.

// Every value in a guarded tree is 0 or has a size between these. Sums,
// products and quotients of two such values are far inside the range of a
// double, so they are taken first and limited after.
const (
	largest  = 1e100
	smallest = 1e-100
	// The least size that may be left over after small values were snapped to
	// 0: the distance of doubles around the grain that snap adds.
	leftOver = 1e-101
)

// Exponents of e that keep the result in range, with a margin.
const maxExponent = 230

// tolerance is how near two values count as equal, in seconds.
const tolerance = 1e-6

// MaxDelay is the longest delay and the widest jitter, 36500 days in seconds.
const MaxDelay = 36500 * 86400

// MaxAttempts is the largest n. A formula has the same value at every n above.
const MaxAttempts = math.MaxInt32

// op is what a node of the guarded tree does.
type op int

const (
	opNum op = iota
	opN
	opAdd
	opSub
	opMul
	opDiv     // by what cannot be 0
	opSafeDiv // by anything; 0 where the divisor is 0
	opNeg
	opLeast
	opGreatest
	opPower
	opExp
	opLn
	opLog10
	opSqrt
	opAtan
	opFloor
	opCeil
	opAbs
	opIf // args are the two sides of the comparison cmp, then, else
	opCount
)

// node is a node of the guarded tree. It is never changed after it was made.
type node struct {
	op   op
	num  float64   // of opNum
	cmp  CompareOp // of opIf
	args []*node
	bounds
}

// number makes a constant.
func number(v float64) *node {
	return &node{op: opNum, num: v, bounds: boundsOf(opNum, v, nil)}
}

// operation makes a node of an operation that is safe on its operands, or its
// value where the operands are constants.
func operation(o op, args ...*node) *node {
	folded := true
	values := make([]float64, len(args))
	for i, arg := range args {
		folded = folded && arg.op == opNum
		values[i] = arg.num
	}
	if folded && len(args) > 0 {
		return number(apply(o, values))
	}
	return &node{op: o, args: args, bounds: boundsOf(o, 0, args)}
}

// guard builds the guarded tree of a formula.
type guard struct{ delay *node }

func (g guard) expr(e Expr) *node {
	switch e := e.(type) {
	case Number:
		return number(e.Unit.seconds(e.Value))
	case Const:
		if e == Pi {
			return number(math.Pi)
		}
		return number(math.E)
	case N:
		return operation(opN)
	case Delay:
		return g.delay
	case Neg:
		return negate(g.expr(e.X))
	case Binary:
		return g.binary(e)
	case Call:
		return g.call(e)
	case If:
		return g.conditional(e)
	}
	panic("sqlgen: a formula with an unknown node was compiled")
}

func (g guard) binary(e Binary) *node {
	x, y := g.expr(e.X), g.expr(e.Y)
	switch e.Op {
	case Add:
		return add(x, y)
	case Subtract:
		return subtract(x, y)
	case Multiply:
		return multiply(x, y)
	case Divide:
		return divide(x, y)
	default:
		return power(x, y)
	}
}

func (g guard) call(e Call) *node {
	args := make([]*node, len(e.Args))
	for i, arg := range e.Args {
		args[i] = g.expr(arg)
	}
	x := args[0]
	switch e.Func {
	case Min:
		return least(args...)
	case Max:
		return greatest(args...)
	case Pow:
		return power(x, args[1])
	case Exp:
		return operation(opExp, clamp(x, -maxExponent, maxExponent))
	case Ln:
		return operation(opLn, greatest(x, number(smallest)))
	case Log10:
		return operation(opLog10, greatest(x, number(smallest)))
	case Sqrt:
		return operation(opSqrt, greatest(x, number(0)))
	case Atan:
		return operation(opAtan, x)
	case Floor:
		if x.whole {
			return x
		}
		return operation(opFloor, operation(opAdd, x, number(tolerance)))
	case Ceil:
		if x.whole {
			return x
		}
		return operation(opCeil, operation(opSub, x, number(tolerance)))
	default:
		return absolute(x)
	}
}

// conditional compares the difference of the two sides with the tolerance.
// Whole numbers are exact on every engine and are compared as they are.
func (g guard) conditional(e If) *node {
	x, y, cmp := g.expr(e.Cond.X), g.expr(e.Cond.Y), e.Cond.Op
	if !x.whole || !y.whole {
		distance := operation(opSub, x, y)
		switch cmp {
		case Less: // x - y < -tolerance
			x, y = distance, number(-tolerance)
		case GreaterEqual:
			x, y, cmp = distance, number(-tolerance), Greater
		case Greater:
			x, y = distance, number(tolerance)
		case LessEqual:
			x, y, cmp = distance, number(tolerance), Less
		case Equal:
			x, y, cmp = absolute(distance), number(tolerance), Less
		case NotEqual:
			x, y, cmp = absolute(distance), number(tolerance), GreaterEqual
		}
	}
	yes, no := g.expr(e.Then), g.expr(e.Else)
	if holds, known := decided(cmp, x.bounds, y.bounds); known && holds {
		return yes
	} else if known {
		return no
	}
	args := []*node{x, y, yes, no}
	return &node{op: opIf, cmp: cmp, args: args, bounds: boundsOf(opIf, 0, args)}
}

func add(x, y *node) *node {
	if isNumber(x, 0) {
		return y
	}
	if isNumber(y, 0) {
		return x
	}
	return limit(operation(opAdd, x, y))
}

func subtract(x, y *node) *node {
	if isNumber(y, 0) {
		return x
	}
	return limit(operation(opSub, x, y))
}

func multiply(x, y *node) *node {
	if isNumber(x, 1) {
		return y
	}
	if isNumber(y, 1) {
		return x
	}
	return limit(operation(opMul, x, y))
}

func divide(x, y *node) *node {
	if isNumber(y, 1) {
		return x
	}
	if y.lo > 0 || y.hi < 0 {
		return limit(operation(opDiv, x, y))
	}
	return limit(operation(opSafeDiv, x, y))
}

func negate(x *node) *node { return operation(opNeg, x) }

func absolute(x *node) *node {
	if x.lo >= 0 {
		return x
	}
	return operation(opAbs, x)
}

func isNumber(x *node, v float64) bool { return x.op == opNum && x.num == v }

// least leaves out the operands that can never be the least.
func least(args ...*node) *node {
	ceiling := math.Inf(1)
	for _, x := range args {
		ceiling = min(ceiling, x.hi)
	}
	return extreme(opLeast, args, func(x *node) bool { return x.lo >= ceiling }, func(x *node) bool { return x.hi == ceiling })
}

// greatest leaves out the operands that can never be the greatest.
func greatest(args ...*node) *node {
	floor := math.Inf(-1)
	for _, x := range args {
		floor = max(floor, x.lo)
	}
	return extreme(opGreatest, args, func(x *node) bool { return x.hi <= floor }, func(x *node) bool { return x.lo == floor })
}

// extreme keeps the first operand that sets the bound, and of the others those
// that may go past it.
func extreme(o op, args []*node, idle, sets func(*node) bool) *node {
	var kept []*node
	set := false
	for _, x := range args {
		switch {
		case !set && sets(x):
			set = true
			kept = append(kept, x)
		case !idle(x):
			kept = append(kept, x)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return operation(o, kept...)
}

// clamp keeps x in [lo, hi].
func clamp(x *node, lo, hi float64) *node {
	return greatest(least(x, number(hi)), number(lo))
}

// limit brings the result of an operation back into the range of values.
func limit(x *node) *node {
	x = clamp(x, -largest, largest)
	if x.tiny < leftOver {
		x = snap(x, 1e-84)
	}
	return x
}

// snap turns a value far smaller than grain into 0 without writing it twice:
// adding the grain loses what is less than 1e-16 of it. Values larger than
// 1e16 grains do not change at all.
func snap(x *node, grain float64) *node {
	x = operation(opSub, operation(opAdd, x, number(grain)), number(grain))
	if x.op != opNum {
		x.tiny = max(x.tiny, grain*1e-17)
	}
	return x
}
