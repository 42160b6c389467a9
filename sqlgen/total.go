package sqlgen

import "math"

// A formula is made total before it is evaluated: it gets a value for every n.
// This file turns the tree of a formula into a guarded tree. That has simpler
// nodes, and guards wherever an engine might raise an error or return NULL,
// infinity or NaN. PostgreSQL raises an error on overflow and on underflow,
// MySQL on overflow. An engine evaluates the argument of least before least can
// limit it. So a guard limits the operands, before the operation. Both
// interpreters, eval.go and render.go, evaluate the same guarded tree, so they
// agree by construction.
//
// A guard is added only where the bounds of the operands (bounds.go) require it,
// so a formula that needs no guard has none. No guard uses an operand twice: the
// size of the SQL is proportional to the size of the formula, not exponential in
// its depth.

// The absolute value of every node of a guarded tree is 0, or between smallest
// and largest. Sums, products and quotients of two such values are far inside
// the range of a double, so they can be computed first and limited afterwards.
const (
	largest  = 1e100
	smallest = 1e-100
	// minAfterFlush is a lower bound for the values, except 0, that flushToZero
	// leaves: the distance between doubles near its threshold.
	minAfterFlush = 1e-101
)

// maxExpArgument is the largest exponent of e whose power is in range, with a
// margin.
const maxExpArgument = 230

// tolerance is the difference, in seconds, below which two values count as equal.
const tolerance = 1e-6

// MaxDelay is the largest delay and the largest jitter: 36,500 days, in seconds.
const MaxDelay = 36500 * 86400

// MaxAttempts is the largest number n of failed attempts. For any larger n, a formula has its value at MaxAttempts.
const MaxAttempts = math.MaxInt32

// op is the operation of a node of the guarded tree.
type op int

const (
	opNum op = iota
	opN
	opAdd
	opSub
	opMul
	opDiv     // the divisor is never 0
	opSafeDiv // the result is 0 if the divisor is 0
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
	opIf // the args are the two operands of cmp, then Then and Else
	opCount
)

// node is a node of the guarded tree. It does not change after it was made.
type node struct {
	op   op
	num  float64   // only if op is opNum
	cmp  CompareOp // only if op is opIf
	args []*node
	bounds
}

// number returns the node of a constant.
func number(v float64) *node {
	return &node{op: opNum, num: v, bounds: boundsOf(opNum, v, nil)}
}

// operation returns the node of an operation that needs no guards, or its value
// if all operands are constants.
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

// guard builds the guarded tree of a formula. delay replaces the node Delay of a
// jitter.
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
		return operation(opExp, clamp(x, -maxExpArgument, maxExpArgument))
	case Ln:
		return operation(opLn, greatest(x, number(smallest)))
	case Log10:
		return operation(opLog10, greatest(x, number(smallest)))
	case Sqrt:
		return operation(opSqrt, greatest(x, number(0)))
	case Atan:
		return operation(opAtan, x)
	case Floor:
		if x.integer {
			return x
		}
		return operation(opFloor, operation(opAdd, x, number(tolerance)))
	case Ceil:
		if x.integer {
			return x
		}
		return operation(opCeil, operation(opSub, x, number(tolerance)))
	default:
		return absolute(x)
	}
}

// conditional compares the difference of the two operands with the tolerance.
// Integers are exact on every engine and are compared directly.
func (g guard) conditional(e If) *node {
	x, y, cmp := g.expr(e.Cond.X), g.expr(e.Cond.Y), e.Cond.Op
	if !x.integer || !y.integer {
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
	if holds, known := compareBounds(cmp, x.bounds, y.bounds); known && holds {
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

// least returns the smallest operand. It omits operands that can never be the
// smallest.
func least(args ...*node) *node {
	ceiling := math.Inf(1)
	for _, x := range args {
		ceiling = min(ceiling, x.hi)
	}
	return extreme(opLeast, args, func(x *node) bool { return x.lo >= ceiling }, func(x *node) bool { return x.hi == ceiling })
}

// greatest returns the largest operand. It omits operands that can never be the
// largest.
func greatest(args ...*node) *node {
	floor := math.Inf(-1)
	for _, x := range args {
		floor = max(floor, x.lo)
	}
	return extreme(opGreatest, args, func(x *node) bool { return x.hi <= floor }, func(x *node) bool { return x.lo == floor })
}

// extreme keeps the first operand that sets the bound, and the operands of the other
// operands that can exceed it.
func extreme(o op, args []*node, irrelevant, sets func(*node) bool) *node {
	var kept []*node
	set := false
	for _, x := range args {
		switch {
		case !set && sets(x):
			set = true
			kept = append(kept, x)
		case !irrelevant(x):
			kept = append(kept, x)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return operation(o, kept...)
}

// clamp limits x to the interval from lo to hi.
func clamp(x *node, lo, hi float64) *node {
	return greatest(least(x, number(hi)), number(lo))
}

// limit brings the result of an operation back into the range of largest and
// smallest.
func limit(x *node) *node {
	x = clamp(x, -largest, largest)
	if x.minNonzero < minAfterFlush {
		x = flushToZero(x, 1e-84)
	}
	return x
}

// flushToZero replaces a value that is much smaller than threshold by 0, without
// using x twice: adding and subtracting threshold loses everything below 1e-16 of
// it. Values larger than 1e16 times the threshold do not change.
func flushToZero(x *node, threshold float64) *node {
	x = operation(opSub, operation(opAdd, x, number(threshold)), number(threshold))
	if x.op != opNum {
		x.minNonzero = max(x.minNonzero, threshold*1e-17)
	}
	return x
}
