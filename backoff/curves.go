package backoff

import "time"

// Constant waits the same each time.
func Constant(wait time.Duration) Policy { return preset("constant", wait) }

// Linear waits min, then longer by the same step each time, up to max before
// the last of the retries. max must be at least min, retries at least 1; a
// single retry waits min.
func Linear(min, max time.Duration, retries int) Policy { return preset("linear", min, max, retries) }

// Arithmetic goes from min to max as Linear does, by steps that grow by the
// same amount each time.
func Arithmetic(min, max time.Duration, retries int) Policy {
	return preset("arithmetic", min, max, retries)
}

// Geometric goes from min to max as Linear does, by the same factor each time.
// min must be at least a millisecond.
func Geometric(min, max time.Duration, retries int) Policy {
	return preset("geometric", min, max, retries)
}

// Exponential is Geometric: the specification that has both describes one
// curve in two ways.
func Exponential(min, max time.Duration, retries int) Policy {
	return preset("exponential", min, max, retries)
}

// Curve is the curve of [SNS] between min and max.
type Curve string

// The curves of SNS.
const (
	LinearCurve      Curve = "linear"
	ArithmeticCurve  Curve = "arithmetic"
	GeometricCurve   Curve = "geometric"
	ExponentialCurve Curve = "exponential"
)

// SNSPhases are the phases of an SNS delivery policy, in the order in which
// the retries go through them.
type SNSPhases struct {
	// Curve is the curve of the third phase. Defaults to LinearCurve.
	Curve Curve
	// Min and Max are the waits at its ends, from 1 second to 1 hour. Default
	// to 20 seconds.
	Min, Max time.Duration
	// Retries is how many retries there are in all phases, from 0 to 100.
	Retries int
	// NoDelay retries come first, at once.
	NoDelay int
	// MinDelay retries come next, each after Min.
	MinDelay int
	// MaxDelay retries come last, each after Max. What Retries has beyond the
	// three is the third phase.
	MaxDelay int
}

// SNS waits by the phases of Amazon SNS.
func SNS(p SNSPhases) Policy {
	if p.Curve == "" {
		p.Curve = LinearCurve
	}
	if p.Min == 0 {
		p.Min = 20 * time.Second
	}
	if p.Max == 0 {
		p.Max = 20 * time.Second
	}
	return preset("sns_"+string(p.Curve), p.Min, p.Max, p.Retries, p.NoDelay, p.MinDelay, p.MaxDelay)
}

// Polynomial waits base + unit * n^exponent, at most max.
func Polynomial(base, unit time.Duration, exponent float64, max time.Duration) Policy {
	return preset("polynomial", base, unit, exponent, max)
}

// Arctan comes near to max along the inverse tangent of n^3 / 15: for 24 hours
// the waits are 1h, 7.5h, 16.2h, 20.5h, 22.2h.
func Arctan(max time.Duration) Policy { return preset("arctan", max) }

// Sigmoid comes near to max along the logistic function.
func Sigmoid(max time.Duration) Policy { return preset("sigmoid", max) }

// Euler comes near to max along (1 + 1/n)^n.
func Euler(max time.Duration) Policy { return preset("euler", max) }

// FullJitter draws from 0 to a wait that begins with base and doubles up to
// most.
func FullJitter(base, most time.Duration) Policy { return preset("full_jitter", base, most) }

// EqualJitter draws from the upper half of a wait that begins with base and
// doubles up to most.
func EqualJitter(base, most time.Duration) Policy { return preset("equal_jitter", base, most) }
