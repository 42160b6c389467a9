// Package backoff holds policies: how long a task waits after it failed, and
// when it is given up. A [Policy] is data. It has a delay and a jitter, which
// are formulas over n, the number of failed attempts, a limit on attempts and a
// limit on elapsed time; the wait after the n-th failure is drawn uniformly
// from delay to delay + jitter.
//
// A policy is written in Go, by the function of a preset:
//
//	backoff.Arctan(24 * time.Hour).WithMaxAttempts(20)
//	backoff.Geometric(5*time.Second, 260*time.Second, 10).WithJitter("0.2 * delay")
//
// or as text, which is how it is stored and shown, and how the command line
// takes it:
//
//	delay 15s + n^4; jitter 30s * n; attempts 26; elapsed 30d
//	arctan(max=12h); attempts 40
//
// [Presets] lists the presets, each with its parameters, its formula and where
// that comes from. In text, a preset alone stands for its whole policy, and the
// clauses behind it replace parts; inside a formula it stands for its delay. It
// is replaced by its formula as soon as it is read, so a stored policy shows
// the formula, can be edited, and does not change when a preset does.
//
// Some presets have no limit, as what they stand for has none: a task with
// [Constant], [Polynomial], [Arctan], [Sigmoid], [Euler], [FullJitter],
// [EqualJitter], [PubSub], [DBScheduler] or [GRPC] is tried for ever, unless
// [Policy.WithMaxAttempts] or [Policy.WithMaxElapsed] is added.
//
// The package imports sqlgen and nothing of the packages above it.
package backoff
