package sqlgen

import "math"

// rounding is the interval of the results that rounding allows for a formula at
// an n.
//
// Law 2 requires values that agree to a microsecond. Some formulas magnify a
// difference in the last digit, on which two libraries need not agree: by
// cancellation, as in (n^20 + 1) - n^20, or by a discontinuity, as in
// floor(1e9 * exp(n)). If the interval is narrower than law 2 requires, law 2
// must hold. If it is not, the value of the engine must be inside the interval.
type rounding struct{ lo, hi float64 }

func (r rounding) tight() bool { return Agree(r.lo, r.hi) }

func (f Formula) roundingBounds(n int64) rounding {
	if n < 1 {
		return rounding{}
	}
	b := f.root().evalBounds(float64(min(n, MaxAttempts)))
	return rounding{b.lo, b.hi}
}

// evalBounds evaluates the guarded tree in interval arithmetic, with the functions
// of bounds.go. They are exact for operations that IEEE 754 rounds correctly, and
// widened for those that a mathematical library computes.
func (x *node) evalBounds(n float64) bounds {
	switch x.op {
	case opN:
		return bounds{lo: n, hi: n, minNonzero: 1, integer: true}
	case opNum:
		// An engine, such as SQLite, may read a literal with an error in the
		// last digit.
		b := x.bounds
		if !x.integer {
			b.lo, b.hi = math.Nextafter(x.num, math.Inf(-1)), math.Nextafter(x.num, math.Inf(1))
		}
		return b
	}
	args := make([]*node, len(x.args))
	for i, arg := range x.args {
		args[i] = &node{bounds: arg.evalBounds(n)}
	}
	var b bounds
	if x.op == opIf {
		if holds, known := compareBounds(x.cmp, args[0].bounds, args[1].bounds); known && holds {
			b = args[2].bounds
		} else if known {
			b = args[3].bounds
		} else {
			b = hull(args[2].lo, args[2].hi, args[3].lo, args[3].hi)
		}
	} else {
		b = interval(x.op, 0, args)
	}
	// For any n, the value is within the bounds that the guards rely on.
	b.lo, b.hi = max(b.lo, x.lo), min(b.hi, x.hi)
	b.minNonzero = x.minNonzero
	return b
}
