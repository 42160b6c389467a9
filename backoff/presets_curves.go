package backoff

import (
	"strings"
)

const (
	minute  = 60.0
	hour    = 60 * minute
	day     = 24 * hour
	century = 36500 * day // sqlgen.MaxDelay
)

// Sources that several presets share.
const (
	zaqar = "gecong, Support More Backoff Functions, OpenStack Zaqar specification (Queens)"
	sns   = "AWS, Amazon SNS message delivery retries, section on the phases of a delivery policy; curves as in " + zaqar
)

// span are the parameters of a curve that runs from min to max.
func span(min, max, retries string) []Param {
	return []Param{
		{Name: "min", Doc: "the wait before the first retry", Kind: Duration, Default: min, Min: 0, Max: century},
		{Name: "max", Doc: "the wait before the last retry, and all after it", Kind: Duration, Default: max, Min: 0, Max: century},
		{Name: "retries", Doc: "how many retries there are; a single one waits min", Kind: Count, Default: retries, Min: 1, Max: 1e6},
	}
}

var ascending = rule{"max >= min", "max must be at least min"}

// curve is one of Zaqar's four functions. Its formula is in K, the number of
// the retry from 1, and R, how many retries there are. Each gives min at K = 1
// and max at K = R, also where the specification's does not: its linear step
// divides by R, which never arrives at max.
type curve struct{ name, formula, doc string }

var curves = []curve{
	{"linear", "min + (max - min) * (K - 1) / max(R - 1, 1)", "the wait grows by the same step each time"},
	{"arithmetic", "min + (max - min) * K * (K - 1) / max(R * (R - 1), 1)", "the steps grow by the same amount each time, so the wait is quadratic"},
	{"geometric", "min * (max / min)^((K - 1) / max(R - 1, 1))", "the wait grows by the same factor each time"},
	{"exponential", "min * (max / min)^((K - 1) / max(R - 1, 1))", "the specification's p * k^n, which is the geometric curve under another name"},
}

// at writes the curve's formula for the k-th of r retries.
func (c curve) at(k, r string) string { return strings.NewReplacer("K", k, "R", r).Replace(c.formula) }

// dividesByMin is whether the curve needs a min above 0.
func (c curve) dividesByMin() bool { return strings.Contains(c.formula, "/ min") }

var curvePresets = append(zaqarPresets(), []Preset{
	{
		Name:   "constant",
		Doc:    "The same wait each time.",
		Source: "ananthakumaran, Visualization of backoff functions, first function",
		Params: []Param{{Name: "wait", Doc: "the wait", Kind: Duration, Default: "5m", Min: 0, Max: century}},
		Delay:  "wait",
	},
	{
		Name:   "polynomial",
		Doc:    "A power of n, up to a maximum.",
		Source: "The common form of Sidekiq's, River's and Zizq's formulas; the default parameters are this library's",
		Params: []Param{
			{Name: "base", Doc: "what every wait has", Kind: Duration, Default: "15s", Min: 0, Max: century},
			{Name: "unit", Doc: "what n^exponent is multiplied by", Kind: Duration, Default: "1s", Min: 0, Max: century},
			{Name: "exponent", Doc: "the power of n", Kind: Factor, Default: "2", Min: 0, Max: 20},
			{Name: "max", Doc: "the longest wait", Kind: Duration, Default: "1d", Min: 0, Max: century},
		},
		Delay: "min(max, base + unit * n^exponent)",
	},
	{
		Name:   "arctan",
		Doc:    "Fast growth at first, then ever nearer to max: with the default 1h, 7.5h, 16h, 20h. The article's SQL rounds max * 2 / pi to 917 minutes, which is 917m * atan(n^3 / 15) here.",
		Source: "Michał, A function for scheduling retries in a job queue, the formula for f(n)",
		Params: []Param{
			{Name: "max", Doc: "what the wait comes near to", Kind: Duration, Default: "24h", Min: 0, Max: century},
			{Name: "power", Doc: "the power of n: larger is steeper", Kind: Factor, Default: "3", Min: 0, Max: 20},
			{Name: "divisor", Doc: "what the power is divided by: larger starts lower", Kind: Factor, Default: "15", Min: 1e-6, Max: 1e12},
		},
		Delay: "max * 2 / pi * atan(n^power / divisor)",
	},
	{
		Name:   "sigmoid",
		Doc:    "The upper half of the logistic function, scaled to run from 0 to max.",
		Source: "Michał, A function for scheduling retries in a job queue, last sentence; the scaling is this library's",
		Params: []Param{
			{Name: "max", Doc: "what the wait comes near to", Kind: Duration, Default: "24h", Min: 0, Max: century},
			{Name: "rate", Doc: "what n is multiplied by: larger is steeper", Kind: Factor, Default: "1", Min: 1e-6, Max: 100},
		},
		Delay: "max * (2 / (1 + exp(-rate * n)) - 1)",
	},
	{
		Name:   "euler",
		Doc:    "The sequence (1 + 1/n)^n, which runs from 2 to e, scaled so that 1 is no wait and e is max.",
		Source: "Michał, A function for scheduling retries in a job queue, last sentence; the scaling is this library's",
		Params: []Param{{Name: "max", Doc: "what the wait comes near to", Kind: Duration, Default: "24h", Min: 0, Max: century}},
		Delay:  "max * ((1 + 1 / n)^n - 1) / (e - 1)",
	},
}...)

func zaqarPresets() []Preset {
	list := make([]Preset, len(curves))
	for i, c := range curves {
		list[i] = Preset{
			Name:        c.name,
			Doc:         "From min to max in a number of retries: " + c.doc + ".",
			Source:      zaqar + ", section " + c.name,
			Params:      span("5s", "260s", "10"),
			Delay:       c.at("min(n, retries)", "retries"),
			MaxAttempts: "retries + 1",
			rules:       []rule{ascending},
		}
		if c.dividesByMin() {
			list[i].Params[0].Min = 1e-3
		}
	}
	return list
}

// snsPresets put the phases of SNS around each curve: retries without delay,
// retries after min, the curve, retries after max.
var snsPresets = func() []Preset {
	const inCurve = "(retries - no_delay - min_delay - max_delay)"
	list := make([]Preset, len(curves))
	for i, c := range curves {
		params := span("20s", "20s", "3")
		params[0].Min, params[0].Max, params[1].Min, params[1].Max = 1, hour, 1, hour
		params[2] = Param{Name: "retries", Doc: "how many retries there are in all phases", Kind: Count, Default: "3", Min: 0, Max: 100}
		for _, phase := range [][2]string{
			{"no_delay", "how many retries come first, without delay"},
			{"min_delay", "how many come next, each after min"},
			{"max_delay", "how many come last, each after max"},
		} {
			params = append(params, Param{Name: phase[0], Doc: phase[1], Kind: Count, Default: "0", Min: 0, Max: 100})
		}
		list[i] = Preset{
			Name:   "sns_" + c.name,
			Doc:    "The phases of an SNS delivery policy: at once, after min, from min to max, after max. In the third, " + c.doc + ".",
			Source: sns,
			Params: params,
			Delay: "if(n <= no_delay, 0, if(n <= no_delay + min_delay, min, if(n > retries - max_delay, max, " +
				c.at("(n - no_delay - min_delay)", inCurve) + ")))",
			MaxAttempts: "retries + 1",
			rules: []rule{ascending,
				{"no_delay + min_delay + max_delay <= retries", "no_delay + min_delay + max_delay must be at most retries"}},
		}
	}
	return list
}()

var visualizationPresets = []Preset{
	{
		Name:   "visualization_constant",
		Doc:    "Five minutes each time.",
		Source: visualization + "constant",
		Delay:  "5m",
	},
	{
		Name:   "visualization_exponential",
		Doc:    "A minimum and minutes that double each time, without an end.",
		Source: visualization + "exponential",
		Params: []Param{
			{Name: "min", Doc: "what every wait has", Kind: Duration, Default: "3m", Min: 0, Max: century},
			{Name: "unit", Doc: "what base^n is multiplied by", Kind: Duration, Default: "1m", Min: 0, Max: century},
			{Name: "base", Doc: "what the rest grows by each time", Kind: Factor, Default: "2", Min: 1, Max: 100},
		},
		Delay: "min + unit * base^n",
	},
	{
		Name:   "visualization_sidekiq",
		Doc:    "The article's form of Sidekiq's formula, in which n and the jitter are larger by one step than in Sidekiq.",
		Source: visualization + "sidekiq",
		Delay:  "n^4 + 15s",
		Jitter: "30s * (n + 1)",
	},
	{
		Name:   "visualization_buckets",
		Doc:    "Anywhere between the power of n and that of n + 2, so that the buckets of neighbouring attempts overlap and no time is idle.",
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
		Doc:    "Anywhere between nothing and a wait that doubles up to cap.",
		Source: "Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, FullJitter; the default parameters are this library's",
		Params: jitterParams,
		Delay:  "0",
		Jitter: doubling,
	},
	{
		Name:   "equal_jitter",
		Doc:    "Half of a wait that doubles up to cap, and anything up to the other half.",
		Source: "Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, EqualJitter; the default parameters are this library's",
		Params: jitterParams,
		Delay:  doubling + " / 2",
		Jitter: "delay",
	},
}

const doubling = "min(cap, base * 2^(n - 1))"

var jitterParams = []Param{
	{Name: "base", Doc: "the wait after the first failure, before jitter", Kind: Duration, Default: "1s", Min: 0, Max: century},
	{Name: "cap", Doc: "the longest wait", Kind: Duration, Default: "5m", Min: 0, Max: century},
}
