package sqlgen

import "math"

// Law 2 asks for values that agree to a microsecond. A formula that cancels,
// such as (n^20 + 1) - n^20, or that puts a rounded value next to a jump, as
// floor(1e9 * exp(n)) does, magnifies the last digit of an engine's exp into
// something larger, and no two libraries need to agree on that digit. So the
// test computes, for each tree and n, the interval that contains every result
// which rounding allows. Where the interval is narrower than law 2, law 2 must
// hold; where it is not, the engine's value must lie inside.
type rounding struct{ lo, hi float64 }

func (r rounding) tight() bool { return Agree(r.lo, r.hi) }

func (f Formula) roundingBounds(n int64) rounding {
	if n < 1 {
		return rounding{}
	}
	b := f.root().rounded(float64(min(n, MaxAttempts)))
	return rounding{b.lo, b.hi}
}

// rounded is interval arithmetic over the guarded tree, with the transfer
// functions of bounds.go: exact for what IEEE 754 rounds correctly, widened
// for what a mathematical library computes.
func (x *node) rounded(n float64) bounds {
	switch x.op {
	case opN:
		return bounds{lo: n, hi: n, tiny: 1, whole: true}
	case opNum:
		// An engine may read a literal one digit off: SQLite does.
		b := x.bounds
		if !x.whole {
			b.lo, b.hi = math.Nextafter(x.num, math.Inf(-1)), math.Nextafter(x.num, math.Inf(1))
		}
		return b
	}
	args := make([]*node, len(x.args))
	for i, arg := range x.args {
		args[i] = &node{bounds: arg.rounded(n)}
	}
	var b bounds
	if x.op == opIf {
		if holds, known := decided(x.cmp, args[0].bounds, args[1].bounds); known && holds {
			b = args[2].bounds
		} else if known {
			b = args[3].bounds
		} else {
			b = hull(args[2].lo, args[2].hi, args[3].lo, args[3].hi)
		}
	} else {
		b = interval(x.op, 0, args)
	}
	// Whatever n is, the value is within the bounds that the guards rely on.
	b.lo, b.hi = max(b.lo, x.lo), min(b.hi, x.hi)
	b.tiny = x.tiny
	return b
}
