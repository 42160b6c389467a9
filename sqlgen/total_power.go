package sqlgen

import "math"

// Limits on the arguments and the result of power.
const (
	// minPower is the smallest result. PostgreSQL reports an underflow for
	// results near 1e-308.
	minPower = 1e-290
	// maxConstantExponent is the largest constant exponent. A larger one gives
	// the same results: 0, 1 or largest.
	maxConstantExponent = 1e15
	// maxSignedExponent is the largest constant exponent with which a negative
	// base keeps its sign.
	maxSignedExponent = 16
	// maxPowerExponent is the largest exponent that is passed to the power
	// function of an engine. Go's library, which TiDB uses, multiplies
	// repeatedly and loses one part in 2^53 for each unit of the exponent.
	// Beyond this limit it would lose more than libraryError.
	maxPowerExponent = 1000
)

// power returns a^b with guards. If the exponent is constant, the base is
// limited. If the base is constant, the exponent is limited. If both vary and
// the result may be out of range, or if the exponent may be large, a^b is
// computed as exp(b * ln(a)).
func power(a, b *node) *node {
	switch {
	case b.op == opNum:
		return powerConstant(a, b.num)
	case a.op == opNum && a.num == 1:
		return a
	case a.op == opNum && a.num > 0:
		// a^p and a^q are smallest and largest, in the order that the sign of
		// ln(a) decides.
		p, q := math.Log(smallest)/math.Log(a.num), math.Log(largest)/math.Log(a.num)
		p, q = min(p, q), max(p, q)
		if b.integer { // 332 instead of 332.19… makes the SQL easier to read
			p, q = math.Ceil(p), math.Floor(q)
		}
		if b = clamp(b, p, q); max(-b.lo, b.hi) <= maxPowerExponent {
			return operation(opPower, a, b)
		}
		return operation(opExp, clamp(multiply(b, number(ln(a.num))), -maxExpArgument, maxExpArgument))
	}
	if b.lo < 0 {
		a = greatest(a, number(smallest))
	} else {
		a = greatest(a, number(0))
	}
	if a.hi <= 0 && b.lo > 0 {
		return number(0)
	}
	if inside := func(x, y float64) bool { return math.Abs(y*math.Log(x)) <= maxExpArgument }; a.hi > 0 && max(-b.lo, b.hi) <= maxPowerExponent &&
		inside(max(a.lo, a.minNonzero), b.lo) && inside(max(a.lo, a.minNonzero), b.hi) && inside(a.hi, b.lo) && inside(a.hi, b.hi) {
		return operation(opPower, a, b)
	}
	log := operation(opLn, greatest(a, number(smallest)))
	return operation(opExp, clamp(multiply(b, log), -maxExpArgument, maxExpArgument))
}

// powerConstant returns a^k with guards.
func powerConstant(a *node, k float64) *node {
	k = max(-maxConstantExponent, min(k, maxConstantExponent))
	switch {
	case k == 0:
		return number(1)
	case k == 1:
		return a
	case k < 0:
		return divide(number(1), powerConstant(a, -k))
	}
	if a.lo < 0 {
		switch even := math.Mod(k, 2) == 0; {
		case even:
			a = absolute(a)
		case k != math.Trunc(k) || k > maxSignedExponent:
			a = greatest(a, number(0))
		}
	}
	if k > maxPowerExponent {
		// A base of 0 gives a result so small that limit makes it 0.
		log := operation(opLn, greatest(a, number(smallest)))
		return limit(operation(opExp, clamp(multiply(number(k), log), math.Log(1e-120), maxExpArgument)))
	}
	root := math.Pow(largest, 1/k)
	a = clamp(a, -root, root)
	if math.Pow(a.minNonzero, k) < minPower {
		if a.lo >= 0 {
			// A smaller base gives a result so small that limit makes it 0.
			a = greatest(a, number(math.Pow(1e-120, 1/k)))
		} else {
			a = flushToZero(a, 1)
		}
	}
	return limit(operation(opPower, a, number(k)))
}
