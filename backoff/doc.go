// Package backoff defines retry policies: how long a task waits after a
// failure, and when it is given up.
//
// A [Policy] is data. It has a delay and a jitter, which are formulas over n,
// the number of failed attempts. It may also limit the number of attempts and
// the elapsed time. The wait after the n-th failure is drawn uniformly from
// delay to delay + jitter.
//
// Write a policy in Go, with the function of a preset:
//
//	backoff.Arctan(24 * time.Hour).WithMaxAttempts(20)
//	backoff.Geometric(5*time.Second, 260*time.Second, 10).WithJitter("0.2 * delay")
//
// or as text, the form in which policies are stored, displayed, and passed to
// the command line:
//
//	delay 15s + n^4; jitter 30s * n; attempts 26; elapsed 30d
//	arctan(max=12h); attempts 40
//
// [Presets] lists the presets, each with its parameters, its formulas and their source. If the first clause of a text is a
// preset and nothing else, as in the second line above, the policy also has the preset's jitter and limits, unless later
// clauses replace them. Inside a larger formula, a preset stands only for its delay. [Parse] replaces a preset with its
// formulas, so a stored policy shows its formulas, can be edited, and does not change when a preset does.
//
// Some presets have no limit, because the policies that they reproduce have none: [Constant], [Polynomial], [Arctan],
// [Sigmoid], [Euler], [FullJitter], [EqualJitter], [PubSub], [DBScheduler] and [GRPC]. With these presets, tasks are
// retried indefinitely, unless [Policy.WithMaxAttempts] or [Policy.WithMaxElapsed] adds a limit.
//
// The function of a preset returns no error. If an argument is out of range,
// [Policy.Err] of the returned policy reports it.
//
// The only public package of falldue that this package imports is sqlgen.
package backoff
