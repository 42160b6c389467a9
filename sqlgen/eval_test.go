package sqlgen

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// formula compiles a text.
func formula(t testing.TB, text string) Formula {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEvalReturnsTheValueOfAFormula(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int64
		want float64
	}{
		{"15s + n^4", 3, 96},
		{"15s + n^4", 0, 0}, // no failure, no wait
		{"15s + n^4", -1, 0},
		{"15s + n^4", math.MinInt64, 0},
		{"15s + n^4", math.MaxInt64, MaxDelay},
		{"n / 1e6", math.MaxInt64, math.MaxInt32 / 1e6}, // n ends at 2^31-1
		{"1h30m + 500ms", 1, 5400.5},
		{"1d / 2", 1, 43200},
		{"-5", 1, 0}, // a wait is never negative
		{"n - 3", 2, 0},
		{"2^n", 2000, MaxDelay},
		{"2^3^2", 1, 512},
		{"0 - -2^2", 1, 4},
		{"1 / (n - 3)", 3, 0}, // a division by 0
		{"7 + n / 0", 1, 7},
		{"0 / 0", 1, 0},
		{"0^0", 1, 1},
		{"(n - 1)^0", 1, 1},
		{"(n - 1)^-1", 1, 0}, // like 1 / 0
		{"(n - 1)^-0.5", 1, 0},
		{"(n - 1)^(-1 / n)", 1, MaxDelay}, // 1e-100 to the power of -1
		{"(0 - 2)^2", 1, 4},
		{"10 + (0 - 2)^3", 1, 2},
		{"(1 - n)^18", 3, 262144},         // any even integer as the exponent
		{"131073 + (1 - n)^15", 3, 98305}, // an odd integer up to 15
		{"5 + (1 - n)^17", 3, 5},          // above 15 a negative base counts as 0
		{"5 + (1 - n)^2.5", 3, 5},
		{"sqrt(n - 5)", 1, 0},
		{"ln(n - 1) + 231", 1, 231 - 230.25850929940458},
		{"log10(0) + 101", 1, 1},
		{"exp(5000)", 1, MaxDelay},
		{"1 / exp(n)", 5000, math.Exp(-230)},
		{"exp(-n) * 1e100", 5000, math.Exp(-230) * 1e100},
		{"0.5^5000 * 1e100", 1, 0}, // below 1e-100 a power is 0
		{"1e-100 * 1e-100 * 1e100 * 1e100", 1, 0},
		{"1e100 * 1e100 / 1e99", 1, 10}, // above 1e100 it is 1e100
		{"floor(2.9999995)", 1, 3},      // less than a microsecond does not count
		{"floor(2.99999)", 1, 2},
		{"ceil(3.0000005)", 1, 3},
		{"ceil(3.00001)", 1, 4},
		{"floor(-0.5) + 3", 1, 2},
		{"if(n / 3 == 1, 7, 8)", 3, 7},
		{"if(0.1 + 0.2 == 0.3, 7, 8)", 1, 7},
		{"if(0.1 + 0.2 > 0.3, 7, 8)", 1, 8},
		{"if(0.1 + 0.2 <= 0.3, 7, 8)", 1, 7},
		{"if(n < 3, 7, 8)", 3, 8},
		{"if(n != 3, 7, 8)", 3, 8},
		{"if(n >= 3, 7, 8)", 3, 7},
		{"log10(1000)", 1, 3},
		{"24h * 2 / pi * atan(n^3 / 15)", 1, 3661.511841},
		{"min(n, 3, 2) + max(n, 9)", 7, 11},
		{"abs(3 - n)", 10, 7},
		{"e", 1, math.E},
	} {
		if got := formula(t, c.text).Eval(c.n); !Agree(got, c.want) {
			t.Errorf("%s at %d is %v, want %v", c.text, c.n, got, c.want)
		}
	}
}

func TestMicrosRoundsHalvesUp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0.0000005": 1, "0.00000049": 0, "1.5": 1500000, "36500d": MaxDelay * 1e6, "n / 3": 333333, "0.0000025": 3,
	} {
		if got := formula(t, text).Micros(1); got != want {
			t.Errorf("%s is %d µs, want %d", text, got, want)
		}
	}
}

func TestZeroFormulaIsZero(t *testing.T) {
	t.Parallel()
	var f Formula
	if f.Eval(5) != 0 || f.String() != "0" || !f.IsZero() {
		t.Errorf("the zero formula is %s = %v", f, f.Eval(5))
	}
	if formula(t, "n").IsZero() {
		t.Error("n is zero")
	}
}

func TestJitterUsesItsDelay(t *testing.T) {
	t.Parallel()
	e, err := ParseJitter("0.2 * delay + delay / n")
	if err != nil {
		t.Fatal(err)
	}
	jitter, err := CompileJitter(e, formula(t, "n^4 - 5"))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]float64{0: 0, 1: 0, 3: 0.2*76 + 76.0/3, 1e6: MaxDelay * (0.2 + 1e-6)} {
		if got := jitter.Eval(n); !Agree(got, want) {
			t.Errorf("at %d it is %v, want %v", n, got, want)
		}
	}
	if got := jitter.String(); got != "0.2 * delay + delay / n" {
		t.Errorf("it prints %s", got)
	}
}

func TestCompileRejectsInvalidTrees(t *testing.T) {
	t.Parallel()
	deep := Expr(N{})
	for range MaxDepth {
		deep = Neg{deep}
	}
	for want, e := range map[string]Expr{
		"the formula has a missing operand":        nil,
		"has a missing operand":                    Binary{Add, N{}, nil},
		"delay may be used only in a jitter":       Call{Max, []Expr{N{}, Delay{}}},
		"unknown constant \"tau\"":                 Const("tau"),
		"unknown operator \"%\"":                   Binary{'%', N{}, N{}},
		"unknown function \"sin\"":                 Call{"sin", []Expr{N{}}},
		"exp takes 1 argument, not 0":              Call{Exp, nil},
		"unknown comparison \"=\"":                 If{Compare{"=", N{}, N{}}, N{}, N{}},
		"the number NaN is out of range":           Number{Value: math.NaN()},
		"the number +Inf is out of range":          Number{Value: math.Inf(1)},
		"the number 1e+99d is out of range":        Number{1e99, Day},
		"unknown unit \"w\"":                       Number{1, "w"},
		"the formula is nested more than 100 deep": deep,
		"the formula has more than 512 nodes":      Call{Max, make([]Expr, MaxNodes)},
	} {
		if call, ok := e.(Call); ok && len(call.Args) == MaxNodes {
			for i := range call.Args {
				call.Args[i] = N{}
			}
		}
		if _, err := Compile(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	nested, err := Parse(strings.Repeat("1/(n-", maxDivisions+1) + "n" + strings.Repeat(")", maxDivisions+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(nested); err == nil {
		t.Error("divisors that may be 0 nest without a limit")
	}
	large, err := ParseJitter("delay" + strings.Repeat(" + delay", 90))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CompileJitter(large, formula(t, "min("+strings.Repeat("n,", 400)+"n^2)")); err == nil {
		t.Error("a jitter that repeats a large delay compiled")
	}
}

// Law 1 in Go: every formula has a value from 0 to MaxDelay at every n.
func TestEvalIsTotal(t *testing.T) {
	t.Parallel()
	c := seeded(7)
	useful := 0
	for range 5000 {
		f := randomFormula(c)
		for _, n := range sampleAttempts {
			v := f.Eval(n.Int64)
			if !(v >= 0 && v <= MaxDelay) {
				t.Fatalf("f(%d) = %v for %s", n.Int64, v, f)
			}
			if v > 0 && v < MaxDelay {
				useful++
			}
		}
	}
	if useful < 120000 {
		t.Errorf("only %d values lie between the limits: the trees test too little", useful)
	}
}

// The functions that two libraries may compute differently are correct to the
// last digit. The test compares them with a precision of 400 bits.
func TestPowersAreExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 0))
	for i := range 150 {
		x, y := math.Exp(3*r.NormFloat64()), 20*r.NormFloat64()
		if i%3 == 0 {
			x, y = 1+1e-6*r.Float64(), 1e6*r.Float64()
		}
		log := bigLog(x)
		power := new(big.Float).Mul(log, big.NewFloat(y))
		if size, _ := power.Float64(); math.Abs(size) > maxExpArgument {
			continue
		}
		for name, pair := range map[string]struct {
			got  float64
			want *big.Float
		}{
			"pow":   {pow(x, y), bigExp(power)},
			"ln":    {ln(x), log},
			"log10": {log10(x), new(big.Float).Quo(log, bigLog(10))},
			"exp":   {exp(y), bigExp(big.NewFloat(y).SetPrec(400))},
		} {
			if want, _ := pair.want.Float64(); pair.got != want {
				t.Errorf("%s of %v, %v is %v, want %v", name, x, y, pair.got, want)
			}
		}
	}
	for got, want := range map[float64]float64{
		pow(-2, 3): -8, pow(-2, 2): 4, pow(0, 2): 0, pow(5, 0): 1, pow(52, 1): 52, pow(2, 0.5): math.Sqrt2, log10(1000): 3,
	} {
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// bigExp returns e^x to 400 bits, from its power series.
func bigExp(x *big.Float) *big.Float {
	y := new(big.Float).SetPrec(400).Set(x)
	halvings := 0
	for ; y.Sign() != 0 && y.MantExp(nil) > -4; halvings++ {
		y.Quo(y, big.NewFloat(2))
	}
	sum, term := new(big.Float).SetPrec(400).SetInt64(1), new(big.Float).SetPrec(400).SetInt64(1)
	for i := range 80 {
		term.Mul(term, y)
		term.Quo(term, big.NewFloat(float64(i+1)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns ln(x). It uses Halley's iteration on bigExp.
func bigLog(x float64) *big.Float {
	exact := new(big.Float).SetPrec(400).SetFloat64(x)
	y := new(big.Float).SetPrec(400).SetFloat64(math.Log(x))
	for range 4 {
		e := bigExp(y)
		step := new(big.Float).Sub(exact, e)
		step.Quo(step, e.Add(exact, e))
		y.Add(y, step.Mul(step, big.NewFloat(2)))
	}
	return y
}

func TestAgreeAllowsForRounding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, y float64
		want bool
	}{
		{5, 5, true}, {5, 5.0000009, true}, {5, 5.000002, false}, {86399, 86399.00001, false},
		{864000, 864000.0008, true}, {864000, 864000.0009, false}, {86400, 86400.00008, true}, {0, 0, true},
	} {
		if got := Agree(c.x, c.y); got != c.want {
			t.Errorf("Agree(%v, %v) = %v", c.x, c.y, got)
		}
	}
}

// TestAgree: values of up to a day may differ by a microsecond, and longer ones by 1e-9.
func TestAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, y float64
		want bool
	}{
		{60, 60.000001, true}, {60, 60.0000011, false}, {60, 59.0, false}, {86399, 86399.00001, false},
		{1e6, 1e6 + 0.00099, true}, {1e6, 1e6 + 0.0011, false},
	} {
		if got := Agree(c.x, c.y); got != c.want {
			t.Errorf("%v and %v agree: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
