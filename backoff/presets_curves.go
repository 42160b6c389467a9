package backoff

import "strings"

const (
	minute  = 60.0
	hour    = 60 * minute
	day     = 24 * hour
	maxWait = 36500 * day // sqlgen.MaxDelay
)

// Sources that several presets share.
const (
	zaqar = "gecong, Support More Backoff Functions, OpenStack Zaqar specification (Queens)"
	sns   = "AWS, Amazon SNS message delivery retries, section on the phases of a delivery policy; curves as in " + zaqar
)

// curveParams returns the parameters of a curve from min to max, with the given
// defaults.
func curveParams(min, max, retries string) []Param {
	return []Param{
		{Name: "min", Doc: "the wait before the first retry", Kind: Duration, Default: min, Min: 0, Max: maxWait},
		{Name: "max", Doc: "the wait before the last retry, and before any further retries", Kind: Duration, Default: max, Min: 0, Max: maxWait},
		{Name: "retries", Doc: "the number of retries; with 1 retry, the wait is min", Kind: Count, Default: retries, Min: 1, Max: 1e6},
	}
}

var maxAtLeastMin = rule{"max >= min", "max must be at least min"}

// curve is one of the four functions of the Zaqar specification. Its formula
// uses K, the number of the retry, counted from 1, and R, the number of
// retries. Each curve is min at K = 1 and max at K = R. The linear function of
// the specification is not: its step divides by R, so it never reaches max.
type curve struct{ name, formula, doc string }

var curves = []curve{
	{"linear", "min + (max - min) * (K - 1) / max(R - 1, 1)", "the wait grows by the same step each time"},
	{"arithmetic", "min + (max - min) * K * (K - 1) / max(R * (R - 1), 1)", "the steps grow by the same amount each time, so the wait is quadratic"},
	{"geometric", "min * (max / min)^((K - 1) / max(R - 1, 1))", "the wait grows by the same factor each time"},
	{"exponential", "min * (max / min)^((K - 1) / max(R - 1, 1))", "the wait is the specification's p * k^n, the same curve as the geometric one"},
}

// formulaAt returns the formula for retry number k of r retries.
func (c curve) formulaAt(k, r string) string {
	return strings.NewReplacer("K", k, "R", r).Replace(c.formula)
}

// dividesByMin reports whether min must be greater than 0.
func (c curve) dividesByMin() bool { return strings.Contains(c.formula, "/ min") }

var curvePresets = append(zaqarPresets(), []Preset{
	{
		Name:   "constant",
		Doc:    "The wait is always the same.",
		Source: "ananthakumaran, Visualization of backoff functions, first function",
		Params: []Param{{Name: "wait", Doc: "the wait", Kind: Duration, Default: "5m", Min: 0, Max: maxWait}},
		Delay:  "wait",
	},
	{
		Name:   "polynomial",
		Doc:    "The wait is a power of n plus a constant, up to a maximum.",
		Source: "The common form of Sidekiq's, River's and Zizq's formulas; the default parameters are this library's",
		Params: []Param{
			{Name: "base", Doc: "the constant part of the wait", Kind: Duration, Default: "15s", Min: 0, Max: maxWait},
			{Name: "unit", Doc: "the factor of n^exponent", Kind: Duration, Default: "1s", Min: 0, Max: maxWait},
			{Name: "exponent", Doc: "the power of n", Kind: Factor, Default: "2", Min: 0, Max: 20},
			{Name: "max", Doc: "the longest wait", Kind: Duration, Default: "1d", Min: 0, Max: maxWait},
		},
		Delay: "min(max, base + unit * n^exponent)",
	},
	{
		Name:   "arctan",
		Doc:    "The wait grows fast at first and approaches max. With the default max, the first waits are 1h, 7.5h, 16h and 20h. The article's SQL rounds max * 2 / pi to 917 minutes: in this language, 917m * atan(n^3 / 15).",
		Source: "Michał, A function for scheduling retries in a job queue, the formula for f(n)",
		Params: []Param{
			{Name: "max", Doc: "the limit that the wait approaches", Kind: Duration, Default: "24h", Min: 0, Max: maxWait},
			{Name: "power", Doc: "the power of n; a larger power makes the curve steeper", Kind: Factor, Default: "3", Min: 0, Max: 20},
			{Name: "divisor", Doc: "the divisor of the power; with a larger divisor, the curve starts lower", Kind: Factor, Default: "15", Min: 1e-6, Max: 1e12},
		},
		Delay: "max * 2 / pi * atan(n^power / divisor)",
	},
	{
		Name:   "sigmoid",
		Doc:    "The wait is the upper half of the logistic function, scaled to run from 0 to max.",
		Source: "Michał, A function for scheduling retries in a job queue, last sentence; the scaling is this library's",
		Params: []Param{
			{Name: "max", Doc: "the limit that the wait approaches", Kind: Duration, Default: "24h", Min: 0, Max: maxWait},
			{Name: "rate", Doc: "the factor of n; a larger factor makes the curve steeper", Kind: Factor, Default: "1", Min: 1e-6, Max: 100},
		},
		Delay: "max * (2 / (1 + exp(-rate * n)) - 1)",
	},
	{
		Name:   "euler",
		Doc:    "The wait is the sequence (1 + 1/n)^n, which runs from 2 to e, scaled so that 1 becomes 0 and e becomes max.",
		Source: "Michał, A function for scheduling retries in a job queue, last sentence; the scaling is this library's",
		Params: []Param{{Name: "max", Doc: "the limit that the wait approaches", Kind: Duration, Default: "24h", Min: 0, Max: maxWait}},
		Delay:  "max * ((1 + 1 / n)^n - 1) / (e - 1)",
	},
}...)

func zaqarPresets() []Preset {
	list := make([]Preset, len(curves))
	for i, c := range curves {
		list[i] = Preset{
			Name:        c.name,
			Doc:         "The wait runs from min to max in the given number of retries: " + c.doc + ".",
			Source:      zaqar + ", section " + c.name,
			Params:      curveParams("5s", "260s", "10"),
			Delay:       c.formulaAt("min(n, retries)", "retries"),
			MaxAttempts: "retries + 1",
			rules:       []rule{maxAtLeastMin},
		}
		if c.dividesByMin() {
			list[i].Params[0].Min = 1e-3
		}
	}
	return list
}

// snsPresets are the four phases of SNS for each curve: retries without delay,
// retries that wait min, the curve, retries that wait max.
var snsPresets = func() []Preset {
	const inCurve = "(retries - no_delay - min_delay - max_delay)"
	list := make([]Preset, len(curves))
	for i, c := range curves {
		params := curveParams("20s", "20s", "3")
		params[0].Min, params[0].Max, params[1].Min, params[1].Max = 1, hour, 1, hour
		params[2] = Param{Name: "retries", Doc: "the number of retries in all phases", Kind: Count, Default: "3", Min: 0, Max: 100}
		for _, phase := range [][2]string{
			{"no_delay", "the number of retries in the first phase, without delay"},
			{"min_delay", "the number of retries in the second phase, each after min"},
			{"max_delay", "the number of retries in the last phase, each after max"},
		} {
			params = append(params, Param{Name: phase[0], Doc: phase[1], Kind: Count, Default: "0", Min: 0, Max: 100})
		}
		list[i] = Preset{
			Name:   "sns_" + c.name,
			Doc:    "The four phases of an SNS delivery policy: without delay, after min, from min to max, after max. In the third phase, " + c.doc + ".",
			Source: sns,
			Params: params,
			Delay: "if(n <= no_delay, 0, if(n <= no_delay + min_delay, min, if(n > retries - max_delay, max, " +
				c.formulaAt("(n - no_delay - min_delay)", inCurve) + ")))",
			MaxAttempts: "retries + 1",
			rules: []rule{maxAtLeastMin,
				{"no_delay + min_delay + max_delay <= retries", "no_delay + min_delay + max_delay must be at most retries"}},
		}
	}
	return list
}()

var visualizationPresets = []Preset{
	{
		Name:   "visualization_constant",
		Doc:    "The wait is always 5 minutes.",
		Source: visualization + "constant",
		Delay:  "5m",
	},
	{
		Name:   "visualization_exponential",
		Doc:    "The wait is a minimum plus a part that doubles with each failure, without a limit.",
		Source: visualization + "exponential",
		Params: []Param{
			{Name: "min", Doc: "the constant part of the wait", Kind: Duration, Default: "3m", Min: 0, Max: maxWait},
			{Name: "unit", Doc: "the factor of base^n", Kind: Duration, Default: "1m", Min: 0, Max: maxWait},
			{Name: "base", Doc: "the factor by which the growing part is multiplied after each failure", Kind: Factor, Default: "2", Min: 1, Max: 100},
		},
		Delay: "min + unit * base^n",
	},
	{
		Name:   "visualization_sidekiq",
		Doc:    "Sidekiq's formula in the article's form: in the delay and in the jitter, n is larger by 1 than in Sidekiq.",
		Source: visualization + "sidekiq",
		Delay:  "n^4 + 15s",
		Jitter: "30s * (n + 1)",
	},
	{
		Name:   "visualization_buckets",
		Doc:    "The wait is drawn between n^exponent and (n + 2)^exponent, so that the ranges of successive attempts overlap and leave no idle time.",
		Source: visualization + "buckets; the text has exponent 3, the article's chart was drawn with 3.5",
		Params: []Param{{Name: "exponent", Doc: "the power", Kind: Factor, Default: "3", Min: 0, Max: 20}},
		Delay:  "n^exponent",
		Jitter: "(n + 2)^exponent - n^exponent",
	},
}

const visualization = "ananthakumaran, Visualization of backoff functions, function "

var jitterPresets = []Preset{
	{
		Name:   "full_jitter",
		Doc:    "The wait is drawn between 0 and a limit that doubles up to cap.",
		Source: "Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, FullJitter; the default parameters are this library's",
		Params: jitterParams,
		Delay:  "0",
		Jitter: doublingWait,
	},
	{
		Name:   "equal_jitter",
		Doc:    "The wait is drawn between half of a limit and the whole limit. The limit doubles up to cap.",
		Source: "Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, EqualJitter; the default parameters are this library's",
		Params: jitterParams,
		Delay:  doublingWait + " / 2",
		Jitter: "delay",
	},
}

const doublingWait = "min(cap, base * 2^(n - 1))"

var jitterParams = []Param{
	{Name: "base", Doc: "the limit after the first failure", Kind: Duration, Default: "1s", Min: 0, Max: maxWait},
	{Name: "cap", Doc: "the largest limit", Kind: Duration, Default: "5m", Min: 0, Max: maxWait},
}
