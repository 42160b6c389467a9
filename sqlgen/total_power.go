package sqlgen

import "math"

// Limits on what power is asked for. The least double that PostgreSQL does
// not report as an underflow is near 1e-308.
const (
	tiniestPower = 1e-290
	maxConstant  = 1e15 // larger exponents are all the same: 0, 1 or largest
	maxSigned    = 16   // the largest whole exponent under which a base keeps its sign
	// The largest exponent that power itself is given. A library that multiplies
	// its way through an exponent, as Go's does, which TiDB uses, loses a digit
	// in 2^53 for each unit of it; beyond this it would lose more than slack.
	maxMultiplied = 1000
)

// power guards a^b by what is known of it. A constant exponent limits the base
// and a constant base the exponent, both in Go. Where both vary, and the result
// may leave the range, and where the exponent may be large, a^b is
// exp(b * ln(a)).
func power(a, b *node) *node {
	switch {
	case b.op == opNum:
		return powerConstant(a, b.num)
	case a.op == opNum && a.num == 1:
		return a
	case a.op == opNum && a.num > 0:
		// Both quotients have the sign that puts smallest^… at one end and
		// largest^… at the other.
		p, q := math.Log(smallest)/math.Log(a.num), math.Log(largest)/math.Log(a.num)
		p, q = min(p, q), max(p, q)
		if b.whole { // 332 and not 332.19…, for those who read the SQL
			p, q = math.Ceil(p), math.Floor(q)
		}
		if b = clamp(b, p, q); max(-b.lo, b.hi) <= maxMultiplied {
			return operation(opPower, a, b)
		}
		return operation(opExp, clamp(multiply(b, number(ln(a.num))), -maxExponent, maxExponent))
	}
	if b.lo < 0 {
		a = greatest(a, number(smallest))
	} else {
		a = greatest(a, number(0))
	}
	if a.hi <= 0 && b.lo > 0 {
		return number(0)
	}
	if inside := func(x, y float64) bool { return math.Abs(y*math.Log(x)) <= maxExponent }; a.hi > 0 && max(-b.lo, b.hi) <= maxMultiplied &&
		inside(max(a.lo, a.tiny), b.lo) && inside(max(a.lo, a.tiny), b.hi) && inside(a.hi, b.lo) && inside(a.hi, b.hi) {
		return operation(opPower, a, b)
	}
	log := operation(opLn, greatest(a, number(smallest)))
	return operation(opExp, clamp(multiply(b, log), -maxExponent, maxExponent))
}

// powerConstant is a^k.
func powerConstant(a *node, k float64) *node {
	k = max(-maxConstant, min(k, maxConstant))
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
		case k != math.Trunc(k) || k > maxSigned:
			a = greatest(a, number(0))
		}
	}
	if k > maxMultiplied {
		// What is 0 becomes so small that limit makes it 0 again.
		log := operation(opLn, greatest(a, number(smallest)))
		return limit(operation(opExp, clamp(multiply(number(k), log), math.Log(1e-120), maxExponent)))
	}
	root := math.Pow(largest, 1/k)
	a = clamp(a, -root, root)
	if math.Pow(a.tiny, k) < tiniestPower {
		if a.lo >= 0 {
			// What is below this becomes so small that limit makes it 0.
			a = greatest(a, number(math.Pow(1e-120, 1/k)))
		} else {
			a = snap(a, 1)
		}
	}
	return limit(operation(opPower, a, number(k)))
}
