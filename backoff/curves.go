package backoff

import "time"

// Constant returns a policy that waits the same time after every failure.
//
// Source: the first function in "Visualization of backoff functions" by ananthakumaran.
func Constant(wait time.Duration) Policy { return fromPreset("constant", wait) }

// Linear returns a policy that waits min before the first retry and max before the last retry. In between, the wait
// grows by the same step each time. max must be at least min, and retries at least 1. If retries is 1, the wait is
// min. A task is executed retries + 1 times at most.
//
// Source: "Support More Backoff Functions" by gecong, a specification of OpenStack Zaqar (Queens), section linear.
func Linear(min, max time.Duration, retries int) Policy {
	return fromPreset("linear", min, max, retries)
}

// Arithmetic is like [Linear], but the steps between waits grow by the same amount each time, so the wait is
// quadratic in n.
//
// Source: "Support More Backoff Functions" by gecong, a specification of OpenStack Zaqar (Queens), section
// arithmetic.
func Arithmetic(min, max time.Duration, retries int) Policy {
	return fromPreset("arithmetic", min, max, retries)
}

// Geometric is like [Linear], but each wait is longer than the previous wait by the same factor. min must be at
// least 1 millisecond.
//
// Source: "Support More Backoff Functions" by gecong, a specification of OpenStack Zaqar (Queens), section
// geometric.
func Geometric(min, max time.Duration, retries int) Policy {
	return fromPreset("geometric", min, max, retries)
}

// Exponential returns the same policy as [Geometric]. The specification describes this curve twice, under both
// names.
//
// Source: "Support More Backoff Functions" by gecong, a specification of OpenStack Zaqar (Queens), section
// exponential.
func Exponential(min, max time.Duration, retries int) Policy {
	return fromPreset("exponential", min, max, retries)
}

// Curve is the way in which the waits of [SNS] grow from Min to Max.
type Curve string

// The curves of [SNS], which are the curves of [Linear], [Arithmetic], [Geometric] and [Exponential].
const (
	LinearCurve      Curve = "linear"
	ArithmeticCurve  Curve = "arithmetic"
	GeometricCurve   Curve = "geometric"
	ExponentialCurve Curve = "exponential"
)

// SNSPhases are the four phases of an SNS delivery policy. The retries go through the phases in this order: NoDelay,
// MinDelay, the curve, MaxDelay.
type SNSPhases struct {
	// Curve is the curve of the third phase. Defaults to LinearCurve.
	Curve Curve
	// Min and Max are the first and the last wait of the curve, from 1 second
	// to 1 hour. Max must be at least Min. Each defaults to 20 seconds.
	Min, Max time.Duration
	// Retries is the number of retries in all phases, from 0 to 100.
	Retries int
	// NoDelay is the number of retries in the first phase. These retries do not wait.
	NoDelay int
	// MinDelay is the number of retries in the second phase. Each of these retries waits Min.
	MinDelay int
	// MaxDelay is the number of retries in the last phase. Each of these retries waits Max. The third phase has all other
	// retries: Retries - NoDelay - MinDelay - MaxDelay, which must not be negative.
	MaxDelay int
}

// SNS returns a policy with the phases of an Amazon SNS delivery policy.
//
// Source: "Amazon SNS message delivery retries" by AWS, the section on the phases of a delivery policy. The curves
// come from "Support More Backoff Functions" by gecong, a specification of OpenStack Zaqar (Queens).
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

// Polynomial returns a policy that waits base + unit * n^exponent, but at most max. The exponent is from 0 to 20.
//
// Source: the common form of the formulas of Sidekiq, River and Zizq.
func Polynomial(base, unit time.Duration, exponent float64, max time.Duration) Policy {
	return fromPreset("polynomial", base, unit, exponent, max)
}

// Arctan returns a policy that waits max * 2 / pi * atan(n^3 / 15). The wait grows fast at first, and then
// approaches max. With a max of 24 hours, the first waits are 1h, 7.5h, 16.2h, 20.5h and 22.2h.
//
// Source: the formula for f(n) in "A function for scheduling retries in a job queue" by Michał.
func Arctan(max time.Duration) Policy { return fromPreset("arctan", max) }

// Sigmoid returns a policy that waits max * (2 / (1 + e^-n) - 1). This is the upper half of the logistic function,
// and approaches max.
//
// Source: the last sentence of "A function for scheduling retries in a job queue" by Michał. falldue adds the scaling
// to max.
func Sigmoid(max time.Duration) Policy { return fromPreset("sigmoid", max) }

// Euler returns a policy that waits max * ((1 + 1/n)^n - 1) / (e - 1), which approaches max.
//
// Source: the last sentence of "A function for scheduling retries in a job queue" by Michał. falldue adds the scaling
// to max.
func Euler(max time.Duration) Policy { return fromPreset("euler", max) }

// FullJitter returns a policy that draws each wait from 0 to a limit. The limit is base after the first failure, and
// doubles after each further failure, up to max.
//
// Source: "Exponential Backoff and Jitter" by Marc Brooker, AWS Architecture Blog, FullJitter.
func FullJitter(base, max time.Duration) Policy { return fromPreset("full_jitter", base, max) }

// EqualJitter returns a policy that draws each wait from half of a limit to the whole limit. The limit is base after
// the first failure, and doubles after each further failure, up to max.
//
// Source: "Exponential Backoff and Jitter" by Marc Brooker, AWS Architecture Blog, EqualJitter.
func EqualJitter(base, max time.Duration) Policy { return fromPreset("equal_jitter", base, max) }
