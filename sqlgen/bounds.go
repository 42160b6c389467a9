package sqlgen

import "math"

// bounds is what is known of a value before n is known. Sums, products,
// quotients and roots round monotonically, so the ends of their intervals,
// computed in doubles, hold for every value between; the ends of the others
// are widened by more than any mathematical library is wrong.
type bounds struct {
	lo, hi float64
	// tiny is the least size the value can have unless it is 0.
	tiny float64
	// whole is whether the value is a whole number that every engine computes
	// exactly.
	whole bool
}

// slack is more than the relative error of any library's pow, exp or ln.
const slack = 1e-12

// maxWhole is the largest number up to which doubles hold every whole number.
const maxWhole = 1 << 53

// unitRoundoff is half the distance of doubles above 1.
const unitRoundoff = 0x1p-53

func boundsOf(o op, num float64, args []*node) bounds {
	b := interval(o, num, args)
	b.tiny = tiny(o, num, args, b)
	b.whole = whole(o, num, args, b)
	if o == opNum || b.lo > 0 || b.hi < 0 {
		b.tiny = max(b.tiny, b.lo, -b.hi)
	}
	return b
}

// interval bounds the value of an operation by the bounds of its operands.
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
		if x.lo < 0 { // a constant whole exponent
			b.lo, b.hi = min(b.lo, 0), max(b.hi, 0)
		}
		return widen(b)
	case opFloor, opCeil, opSqrt:
		return bounds{lo: apply(o, []float64{x.lo}), hi: apply(o, []float64{x.hi})}
	default:
		return widen(bounds{lo: apply(o, []float64{x.lo}), hi: apply(o, []float64{x.hi})})
	}
}

// quotient bounds x / y, whose divisor is at least y.tiny in size or counts
// as making the quotient 0.
func quotient(x, y bounds) bounds {
	var q bounds
	if y.hi > 0 {
		q = including(q, x, max(y.lo, y.tiny), y.hi)
	}
	if y.lo < 0 {
		q = including(q, x, y.lo, min(y.hi, -y.tiny))
	}
	if y.lo > 0 || y.hi < 0 {
		return q
	}
	return bounds{lo: min(q.lo, 0), hi: max(q.hi, 0)}
}

// including widens q by x divided by what lies between lo and hi.
func including(q, x bounds, lo, hi float64) bounds {
	b := hull(x.lo/lo, x.lo/hi, x.hi/lo, x.hi/hi)
	if q == (bounds{}) {
		return b
	}
	return hull(b.lo, b.hi, q.lo, q.hi)
}

// tiny bounds the size of a result that is not 0 from below.
func tiny(o op, num float64, args []*node, b bounds) float64 {
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
		least := min(x.tiny, y.tiny)
		if o == opSub {
			y = bounds{lo: -y.hi, hi: -y.lo}
		}
		if x.lo >= 0 && y.lo >= 0 || x.hi <= 0 && y.hi <= 0 {
			return least
		}
		return least * unitRoundoff // what cancelling may leave
	case opMul:
		return x.tiny * y.tiny
	case opDiv, opSafeDiv:
		return x.tiny / max(-y.lo, y.hi)
	case opLeast, opGreatest:
		least := x.tiny
		for _, arg := range args[1:] {
			least = min(least, arg.tiny)
		}
		return least
	case opIf:
		return min(args[2].tiny, args[3].tiny)
	case opPower:
		from := x.tiny
		if x.lo > 0 {
			from = x.lo
		}
		most := max(x.hi, from)
		return min(pow(from, y.lo), pow(from, y.hi), pow(most, y.lo), pow(most, y.hi)) * (1 - slack)
	case opExp:
		return b.lo
	case opLn, opLog10:
		return unitRoundoff / 4 // next to 1, where doubles are that far apart
	case opSqrt, opAtan:
		return apply(o, []float64{x.tiny}) * (1 - slack)
	default: // opNeg, opAbs
		return x.tiny
	}
}

// whole says whether an operation gives an exact whole number.
func whole(o op, num float64, args []*node, b bounds) bool {
	if max(-b.lo, b.hi) > maxWhole {
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
		if !arg.whole {
			return false
		}
	}
	return true
}

// decided says whether a comparison comes out the same for all values.
func decided(cmp CompareOp, x, y bounds) (holds, known bool) {
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

func hull(values ...float64) bounds {
	b := bounds{lo: values[0], hi: values[0]}
	for _, v := range values[1:] {
		b.lo, b.hi = min(b.lo, v), max(b.hi, v)
	}
	return b
}

func widen(b bounds) bounds {
	return bounds{lo: b.lo - slack*math.Abs(b.lo), hi: b.hi + slack*math.Abs(b.hi)}
}
