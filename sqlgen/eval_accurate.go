package sqlgen

import "math"

// Go's math.Pow multiplies repeatedly for a large exponent and loses digits: the
// relative error of 1.00000005^55017 is 1.7e-12, where the C libraries that the
// engines use are correct to the last digit. So powers, exponentials and
// logarithms are computed here in double-double arithmetic and rounded once.
// They too are correct to the last digit, except for rare ties.

// doubleDouble is a number of about 106 bits: the sum of hi and the much smaller
// lo.
type doubleDouble struct{ hi, lo float64 }

var (
	ln2     = doubleDouble{0.6931471805599453, 2.3190468138462996e-17}
	invLn10 = doubleDouble{0.4342944819032518, 1.098319650216765e-17}
)

// twoSum returns the exact sum of a and b.
func twoSum(a, b float64) doubleDouble {
	s := float64(a + b)
	t := float64(s - a)
	return doubleDouble{s, float64(a-float64(s-t)) + float64(b-t)}
}

// twoProduct returns the exact product of a and b.
func twoProduct(a, b float64) doubleDouble {
	p := float64(a * b)
	return doubleDouble{p, math.FMA(a, b, -p)}
}

func (x doubleDouble) plus(y doubleDouble) doubleDouble {
	s := twoSum(x.hi, y.hi)
	return twoSum(s.hi, float64(s.lo+float64(x.lo+y.lo)))
}

func (x doubleDouble) times(y doubleDouble) doubleDouble {
	p := twoProduct(x.hi, y.hi)
	return twoSum(p.hi, float64(p.lo+float64(float64(x.hi*y.lo)+float64(x.lo*y.hi))))
}

func (x doubleDouble) over(y doubleDouble) doubleDouble {
	q := x.hi / y.hi
	rest := math.FMA(-q, y.hi, x.hi)
	return twoSum(q, float64(rest+float64(x.lo-float64(q*y.lo)))/y.hi)
}

func (x doubleDouble) value() float64 { return x.hi + x.lo }

// reciprocals are 1/1, 1/2, 1/3 …, and factorials 1/0!, 1/1!, 1/2! …
var reciprocals, factorials = func() (r, f [40]doubleDouble) {
	f[0] = doubleDouble{1, 0}
	for i := 1; i < len(r); i++ {
		r[i] = doubleDouble{1, 0}.over(doubleDouble{float64(i), 0})
		f[i] = f[i-1].times(r[i])
	}
	return r, f
}()

// logarithm returns ln(x) for x > 0. It uses
// ln(x) = e ln(2) + 2 atanh((m-1)/(m+1)), where x = m 2^e and m is near 1.
func logarithm(x float64) doubleDouble {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	s := doubleDouble{m - 1, 0}.over(twoSum(m, 1))
	square := s.times(s)
	var series doubleDouble // 1 + s²/3 + s⁴/5 + …; the terms from k on are at most 0.03^k
	for k := 16; k >= 0; k-- {
		series = series.times(square).plus(reciprocals[2*k+1])
	}
	s = doubleDouble{2 * s.hi, 2 * s.lo}
	return s.times(series).plus(doubleDouble{float64(e), 0}.times(ln2))
}

// exponential returns e^x, which must be in the range of a double.
func exponential(x doubleDouble) float64 {
	k := math.Round(x.hi / ln2.hi)
	r := x.plus(doubleDouble{-k, 0}.times(ln2))
	var series doubleDouble // |r| is at most 0.35, and 0.35^20/20! is negligible
	for i := 20; i >= 0; i-- {
		series = series.times(r).plus(factorials[i])
	}
	return math.Ldexp(series.value(), int(k))
}

// pow returns x^y. The guards ensure that y is an integer if x is negative, and
// that the result is in range.
func pow(x, y float64) float64 {
	if x == 0 || y == 0 || math.IsInf(x, 0) {
		return math.Pow(x, y)
	}
	result := exponential(logarithm(math.Abs(x)).times(doubleDouble{y, 0}))
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

func exp(x float64) float64   { return exponential(doubleDouble{x, 0}) }
func ln(x float64) float64    { return logarithm(x).value() }
func log10(x float64) float64 { return logarithm(x).times(invLn10).value() }
