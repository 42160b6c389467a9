package sqlgen

import "math"

// Go's math.Pow multiplies its way through a large exponent and loses digits:
// 1.00000005^55017 is off by 1.7e-12 of its value, where the C libraries that
// the engines use are right to the last digit. The powers, exponentials and
// logarithms here are computed with twice the digits and rounded once, so they
// too are right to the last digit but for rare ties.

// double is a number of some 106 bits: the sum of hi and the far smaller lo.
type double struct{ hi, lo float64 }

var (
	ln2     = double{0.6931471805599453, 2.3190468138462996e-17}
	invLn10 = double{0.4342944819032518, 1.098319650216765e-17}
)

// sumOf adds exactly.
func sumOf(a, b float64) double {
	s := float64(a + b)
	t := float64(s - a)
	return double{s, float64(a-float64(s-t)) + float64(b-t)}
}

// productOf multiplies exactly.
func productOf(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func (x double) plus(y double) double {
	s := sumOf(x.hi, y.hi)
	return sumOf(s.hi, float64(s.lo+float64(x.lo+y.lo)))
}

func (x double) times(y double) double {
	p := productOf(x.hi, y.hi)
	return sumOf(p.hi, float64(p.lo+float64(float64(x.hi*y.lo)+float64(x.lo*y.hi))))
}

func (x double) over(y double) double {
	q := x.hi / y.hi
	rest := math.FMA(-q, y.hi, x.hi)
	return sumOf(q, float64(rest+float64(x.lo-float64(q*y.lo)))/y.hi)
}

func (x double) value() float64 { return x.hi + x.lo }

// reciprocals are 1/1, 1/2, 1/3 …, and factorials 1/0!, 1/1!, 1/2! …
var reciprocals, factorials = func() (r, f [40]double) {
	f[0] = double{1, 0}
	for i := 1; i < len(r); i++ {
		r[i] = double{1, 0}.over(double{float64(i), 0})
		f[i] = f[i-1].times(r[i])
	}
	return r, f
}()

// logarithm is ln(x) for x > 0, from ln(x) = e ln(2) + 2 atanh((m-1)/(m+1))
// with x = m 2^e and m near 1.
func logarithm(x float64) double {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	s := double{m - 1, 0}.over(sumOf(m, 1))
	square := s.times(s)
	var series double // 1 + s²/3 + s⁴/5 + …; at most 0.03^k of it is left at term k
	for k := 16; k >= 0; k-- {
		series = series.times(square).plus(reciprocals[2*k+1])
	}
	s = double{2 * s.hi, 2 * s.lo}
	return s.times(series).plus(double{float64(e), 0}.times(ln2))
}

// exponential is e^x, where it is in the range of a double.
func exponential(x double) float64 {
	k := math.Round(x.hi / ln2.hi)
	r := x.plus(double{-k, 0}.times(ln2))
	var series double // |r| is at most 0.35, and 0.35^20/20! nothing
	for i := 20; i >= 0; i-- {
		series = series.times(r).plus(factorials[i])
	}
	return math.Ldexp(series.value(), int(k))
}

// pow is x^y. The guards leave a negative x with a whole y only, and no result
// out of range.
func pow(x, y float64) float64 {
	if x == 0 || y == 0 || math.IsInf(x, 0) {
		return math.Pow(x, y)
	}
	result := exponential(logarithm(math.Abs(x)).times(double{y, 0}))
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

func exp(x float64) float64   { return exponential(double{x, 0}) }
func ln(x float64) float64    { return logarithm(x).value() }
func log10(x float64) float64 { return logarithm(x).times(invLn10).value() }
