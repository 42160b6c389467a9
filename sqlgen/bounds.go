package sqlgen

import "math"

// bounds is what is known about a value for all n. IEEE 754 rounds sums,
// products, quotients and roots monotonically, so their bounds, computed with
// doubles from the bounds of the operands, are exact. The bounds of the other
// functions are widened by more than the error of any mathematical library.
type bounds struct {
	lo, hi float64
	// minNonzero is a lower bound for the absolute value, unless the value is 0.
	minNonzero float64
	// integer reports whether the value is an integer that every engine
	// computes exactly.
	integer bool
}

// libraryError is larger than the relative error of pow, exp and ln in any library.
const libraryError = 1e-12

// maxInteger is the largest number up to which a double represents every integer.
const maxInteger = 1 << 53

// unitRoundoff is half the distance from 1 to the next double.
const unitRoundoff = 0x1p-53

func boundsOf(o op, num float64, args []*node) bounds {
	b := interval(o, num, args)
	b.minNonzero = minNonzeroOf(o, num, args, b)
	b.integer = isInteger(o, num, args, b)
	if o == opNum || b.lo > 0 || b.hi < 0 {
		b.minNonzero = max(b.minNonzero, b.lo, -b.hi)
	}
	return b
}

// interval returns lo and hi of an operation, from the bounds of its operands.
func interval(o op, num float64, args []*node) bounds {
	var x, y bounds
	if len(args) > 0 {
		x = args[0].bounds
	}
	if len(args) > 1 {
		y = args[1].bounds
	}
	switch o {
	case opNum:
		return bounds{lo: num, hi: num}
	case opN:
		return bounds{lo: 1, hi: MaxAttempts}
	case opAdd:
		return bounds{lo: x.lo + y.lo, hi: x.hi + y.hi}
	case opSub:
		return bounds{lo: x.lo - y.hi, hi: x.hi - y.lo}
	case opMul:
		return hull(x.lo*y.lo, x.lo*y.hi, x.hi*y.lo, x.hi*y.hi)
	case opDiv, opSafeDiv:
		return quotient(x, y)
	case opNeg:
		return bounds{lo: -x.hi, hi: -x.lo}
	case opAbs:
		if x.lo <= 0 && x.hi >= 0 {
			return bounds{lo: 0, hi: max(-x.lo, x.hi)}
		}
		return hull(math.Abs(x.lo), math.Abs(x.hi))
	case opLeast, opGreatest:
		b := x
		for _, arg := range args[1:] {
			if o == opLeast {
				b.lo, b.hi = min(b.lo, arg.lo), min(b.hi, arg.hi)
			} else {
				b.lo, b.hi = max(b.lo, arg.lo), max(b.hi, arg.hi)
			}
		}
		return b
	case opIf:
		yes, no := args[2], args[3]
		return bounds{lo: min(yes.lo, no.lo), hi: max(yes.hi, no.hi)}
	case opPower:
		b := hull(pow(x.lo, y.lo), pow(x.lo, y.hi), pow(x.hi, y.lo), pow(x.hi, y.hi))
		if x.lo < 0 { // the exponent is a constant integer
			b.lo, b.hi = min(b.lo, 0), max(b.hi, 0)
		}
		return widen(b)
	case opFloor, opCeil, opSqrt:
		return bounds{lo: apply(o, []float64{x.lo}), hi: apply(o, []float64{x.hi})}
	default:
		return widen(bounds{lo: apply(o, []float64{x.lo}), hi: apply(o, []float64{x.hi})})
	}
}

// quotient returns the bounds of x / y. The absolute value of y is at least
// y.minNonzero, or y is 0 and so is the quotient.
func quotient(x, y bounds) bounds {
	var q bounds
	if y.hi > 0 {
		q = hullWithQuotient(q, x, max(y.lo, y.minNonzero), y.hi)
	}
	if y.lo < 0 {
		q = hullWithQuotient(q, x, y.lo, min(y.hi, -y.minNonzero))
	}
	if y.lo > 0 || y.hi < 0 {
		return q
	}
	return bounds{lo: min(q.lo, 0), hi: max(q.hi, 0)}
}

// hullWithQuotient extends q by the quotients of x and the values from lo to hi.
func hullWithQuotient(q, x bounds, lo, hi float64) bounds {
	b := hull(x.lo/lo, x.lo/hi, x.hi/lo, x.hi/hi)
	if q == (bounds{}) {
		return b
	}
	return hull(b.lo, b.hi, q.lo, q.hi)
}

// minNonzeroOf returns a lower bound for the absolute value of a result that is
// not 0.
func minNonzeroOf(o op, num float64, args []*node, b bounds) float64 {
	if o == opNum {
		if num == 0 {
			return math.Inf(1)
		}
		return math.Abs(num)
	}
	if o == opN || o == opFloor || o == opCeil {
		return 1
	}
	x, y := args[0].bounds, bounds{}
	if len(args) > 1 {
		y = args[1].bounds
	}
	switch o {
	case opAdd, opSub:
		least := min(x.minNonzero, y.minNonzero)
		if o == opSub {
			y = bounds{lo: -y.hi, hi: -y.lo}
		}
		if x.lo >= 0 && y.lo >= 0 || x.hi <= 0 && y.hi <= 0 {
			return least
		}
		return least * unitRoundoff // what cancellation may leave
	case opMul:
		return x.minNonzero * y.minNonzero
	case opDiv, opSafeDiv:
		return x.minNonzero / max(-y.lo, y.hi)
	case opLeast, opGreatest:
		least := x.minNonzero
		for _, arg := range args[1:] {
			least = min(least, arg.minNonzero)
		}
		return least
	case opIf:
		return min(args[2].minNonzero, args[3].minNonzero)
	case opPower:
		from := x.minNonzero
		if x.lo > 0 {
			from = x.lo
		}
		most := max(x.hi, from)
		return min(pow(from, y.lo), pow(from, y.hi), pow(most, y.lo), pow(most, y.hi)) * (1 - libraryError)
	case opExp:
		return b.lo
	case opLn, opLog10:
		return unitRoundoff / 4 // for an argument next to 1
	case opSqrt, opAtan:
		return apply(o, []float64{x.minNonzero}) * (1 - libraryError)
	default: // opNeg, opAbs
		return x.minNonzero
	}
}

// isInteger reports whether the result of an operation is always an exact integer.
func isInteger(o op, num float64, args []*node, b bounds) bool {
	if max(-b.lo, b.hi) > maxInteger {
		return false
	}
	switch o {
	case opNum:
		return num == math.Trunc(num)
	case opN, opFloor, opCeil:
		return true
	case opIf:
		args = args[2:]
	case opAdd, opSub, opMul, opNeg, opLeast, opGreatest, opAbs:
	default:
		return false
	}
	for _, arg := range args {
		if !arg.integer {
			return false
		}
	}
	return true
}

// compareBounds compares all values of x with all values of y. known reports
// whether the result is the same for all, and holds is that result.
func compareBounds(cmp CompareOp, x, y bounds) (holds, known bool) {
	below, above := x.hi < y.lo, x.lo > y.hi
	same := x.lo == x.hi && y.lo == y.hi && x.lo == y.lo
	switch cmp {
	case Less:
		return below, below || x.lo >= y.hi
	case LessEqual:
		return x.hi <= y.lo, x.hi <= y.lo || above
	case Greater:
		return above, above || x.hi <= y.lo
	case GreaterEqual:
		return x.lo >= y.hi, x.lo >= y.hi || below
	case Equal:
		return same, same || below || above
	default:
		return !same, same || below || above
	}
}

// hull returns the smallest interval that contains the values.
func hull(values ...float64) bounds {
	b := bounds{lo: values[0], hi: values[0]}
	for _, v := range values[1:] {
		b.lo, b.hi = min(b.lo, v), max(b.hi, v)
	}
	return b
}

// widen extends b by libraryError.
func widen(b bounds) bounds {
	return bounds{lo: b.lo - libraryError*math.Abs(b.lo), hi: b.hi + libraryError*math.Abs(b.hi)}
}
