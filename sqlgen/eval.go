package sqlgen

import "math"

// eval returns the value of a guarded tree at n. It is the reference for the
// engines.
func (x *node) eval(n float64) float64 {
	switch x.op {
	case opNum:
		return x.num
	case opN:
		return n
	case opIf:
		if compare(x.cmp, x.args[0].eval(n), x.args[1].eval(n)) {
			return x.args[2].eval(n)
		}
		return x.args[3].eval(n)
	}
	var buffer [4]float64 // avoids an allocation
	values := buffer[:0]
	for _, arg := range x.args {
		values = append(values, arg.eval(n))
	}
	return apply(x.op, values)
}

// apply returns the result of one operation. The conversions to float64 prevent
// the compiler from fusing a product and a sum, which would round once where the
// engines round twice.
func apply(o op, v []float64) float64 {
	switch o {
	case opAdd:
		return float64(v[0] + v[1])
	case opSub:
		return float64(v[0] - v[1])
	case opMul:
		return float64(v[0] * v[1])
	case opDiv:
		return v[0] / v[1]
	case opSafeDiv:
		if v[1] == 0 {
			return 0
		}
		return v[0] / v[1]
	case opNeg:
		return -v[0]
	case opLeast, opGreatest:
		result := v[0]
		for _, x := range v[1:] {
			if o == opLeast {
				result = min(result, x)
			} else {
				result = max(result, x)
			}
		}
		return result
	case opPower:
		return pow(v[0], v[1])
	case opExp:
		return exp(v[0])
	case opLn:
		return ln(v[0])
	case opLog10:
		return log10(v[0])
	case opSqrt:
		return math.Sqrt(v[0])
	case opAtan:
		return math.Atan(v[0])
	case opFloor:
		return math.Floor(v[0])
	case opCeil:
		return math.Ceil(v[0])
	case opAbs:
		return math.Abs(v[0])
	}
	panic("sqlgen: an unknown operation was evaluated")
}

func compare(cmp CompareOp, x, y float64) bool {
	switch cmp {
	case Less:
		return x < y
	case LessEqual:
		return x <= y
	case Greater:
		return x > y
	case GreaterEqual:
		return x >= y
	case Equal:
		return x == y
	case NotEqual:
		return x != y
	}
	panic("sqlgen: an unknown comparison was evaluated")
}

// Agree reports whether two values of one formula, in seconds, count as the same delay. The values may differ by a
// microsecond or, if the larger value is more than a day, by 1e-9 of the larger value.
func Agree(x, y float64) bool {
	distance := math.Abs(x - y)
	return distance <= tolerance || max(x, y) > 86400 && distance <= 1e-9*max(x, y)
}
