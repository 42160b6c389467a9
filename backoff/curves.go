package backoff

import "time"

// Constant waits the same time after every failure.
//
// Source: ananthakumaran, Visualization of backoff functions, first function.
func Constant(wait time.Duration) Policy { return fromPreset("constant", wait) }

// Linear waits min before the first retry and max before the last one. Each
// wait is longer than the one before by the same step. max must be at least
// min, and retries at least 1. If retries is 1, the wait is min. A task is
// executed retries + 1 times.
//
// Source: gecong, Support More Backoff Functions, OpenStack Zaqar
// specification (Queens), section linear.
func Linear(min, max time.Duration, retries int) Policy {
	return fromPreset("linear", min, max, retries)
}

// Arithmetic is like [Linear], but the steps grow by the same amount each
// time, so the wait is quadratic in n.
//
// Source: gecong, Support More Backoff Functions, OpenStack Zaqar
// specification (Queens), section arithmetic.
func Arithmetic(min, max time.Duration, retries int) Policy {
	return fromPreset("arithmetic", min, max, retries)
}

// Geometric is like [Linear], but each wait is longer than the one before by
// the same factor. min must be at least 1 millisecond.
//
// Source: gecong, Support More Backoff Functions, OpenStack Zaqar
// specification (Queens), section geometric.
func Geometric(min, max time.Duration, retries int) Policy {
	return fromPreset("geometric", min, max, retries)
}

// Exponential is the same curve as [Geometric]. The specification describes it
// twice, under both names.
//
// Source: gecong, Support More Backoff Functions, OpenStack Zaqar
// specification (Queens), section exponential.
func Exponential(min, max time.Duration, retries int) Policy {
	return fromPreset("exponential", min, max, retries)
}

// Curve names the curve of [SNS] between min and max.
type Curve string

// The curves of [SNS]. They have the curves of [Linear], [Arithmetic], [Geometric]
// and [Exponential].
const (
	LinearCurve      Curve = "linear"
	ArithmeticCurve  Curve = "arithmetic"
	GeometricCurve   Curve = "geometric"
	ExponentialCurve Curve = "exponential"
)

// SNSPhases are the four phases of an SNS delivery policy. The retries go
// through them in this order: NoDelay, MinDelay, the curve, MaxDelay.
type SNSPhases struct {
	// Curve is the curve of the third phase. Defaults to LinearCurve.
	Curve Curve
	// Min and Max are the first and the last wait of the curve, from 1 second
	// to 1 hour. Max must be at least Min. Each defaults to 20 seconds.
	Min, Max time.Duration
	// Retries is the number of retries in all phases, from 0 to 100.
	Retries int
	// NoDelay is the number of retries in the first phase. They do not wait.
	NoDelay int
	// MinDelay is the number of retries in the second phase. Each waits Min.
	MinDelay int
	// MaxDelay is the number of retries in the last phase. Each waits Max. The
	// third phase has the retries that are left: Retries - NoDelay - MinDelay -
	// MaxDelay, which must not be negative.
	MaxDelay int
}

// SNS waits by the phases of an Amazon SNS delivery policy.
//
// Source: AWS, Amazon SNS message delivery retries, section on the phases of a
// delivery policy. The curves come from gecong, Support More Backoff
// Functions, OpenStack Zaqar specification (Queens).
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
	return fromPreset("sns_"+string(p.Curve), p.Min, p.Max, p.Retries, p.NoDelay, p.MinDelay, p.MaxDelay)
}

// Polynomial waits base + unit * n^exponent, but at most max. The exponent is
// from 0 to 20.
//
// Source: the common form of the formulas of Sidekiq, River and Zizq.
func Polynomial(base, unit time.Duration, exponent float64, max time.Duration) Policy {
	return fromPreset("polynomial", base, unit, exponent, max)
}

// Arctan waits max * 2 / pi * atan(n^3 / 15), which grows fast at first and
// approaches max. For 24 hours the waits are 1h, 7.5h, 16.2h, 20.5h, 22.2h.
//
// Source: the formula for f(n) in "A function for scheduling retries in a job
// queue" by Michał.
func Arctan(max time.Duration) Policy { return fromPreset("arctan", max) }

// Sigmoid waits max * (2 / (1 + e^-n) - 1), the upper half of the logistic
// function, which approaches max.
//
// Source: Michał, A function for scheduling retries in a job queue, last
// sentence. The scaling is this library's.
func Sigmoid(max time.Duration) Policy { return fromPreset("sigmoid", max) }

// Euler waits max * ((1 + 1/n)^n - 1) / (e - 1), which approaches max.
//
// Source: Michał, A function for scheduling retries in a job queue, last
// sentence. The scaling is this library's.
func Euler(max time.Duration) Policy { return fromPreset("euler", max) }

// FullJitter draws each wait from 0 to a limit. The limit is base after the
// first failure and doubles after each further one, up to max.
//
// Source: Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog,
// FullJitter.
func FullJitter(base, max time.Duration) Policy { return fromPreset("full_jitter", base, max) }

// EqualJitter draws each wait from half of a limit to the whole limit. The
// limit is base after the first failure and doubles after each further one, up
// to max.
//
// Source: Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog,
// EqualJitter.
func EqualJitter(base, max time.Duration) Policy { return fromPreset("equal_jitter", base, max) }
