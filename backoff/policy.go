package backoff

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/sqlgen"
)

// Policy defines how long a task waits after a failure, and when it is given
// up. A Policy is immutable: the With methods return changed copies.
//
// The zero Policy is the default, [Zizq]: a delay of 15s + n^4, a jitter of
// 30s * n, and 26 attempts, with the last one after about 25 days.
//
// The functions that return a Policy and no error can initialize a variable in one line. If an argument is invalid,
// they return a Policy whose [Policy.Err] is not nil. Package falldue calls Err: its Enqueue and Run return that error.
type Policy struct {
	delay, jitter sqlgen.Formula
	maxAttempts   int
	maxElapsed    time.Duration
	startWithin   time.Duration
	initialized   bool // false only in the zero Policy
	err           error
}

// New returns a policy with the given delay and jitter, both in seconds, and
// without limits. A nil jitter means none. [Policy.Err] reports a formula that
// does not compile.
func New(delay, jitter sqlgen.Expr) Policy { return newPolicy(delay, jitter).readable() }

func newPolicy(delay, jitter sqlgen.Expr) Policy {
	if jitter == nil {
		jitter = sqlgen.Number{}
	}
	p := Policy{initialized: true}
	if p.delay, p.err = sqlgen.Compile(delay); p.err != nil {
		return invalid(fmt.Errorf("backoff: the delay: %w", p.err))
	}
	if p.jitter, p.err = sqlgen.CompileJitter(jitter, p.delay); p.err != nil {
		return invalid(fmt.Errorf("backoff: the jitter: %w", p.err))
	}
	return p
}

// readable returns p, or a policy with an error if Parse does not make p again of its text.
// Workers have nothing but the text.
func (p Policy) readable() Policy {
	if p.err != nil {
		return p
	}
	text := p.String()
	again, err := parse(text)
	if err == nil && again.String() != text {
		err = fmt.Errorf("the parsed policy is %s", again)
	}
	if err != nil {
		return invalid(fmt.Errorf("backoff: the text of the policy does not parse as the same policy: %w", err))
	}
	return p
}

// invalid returns a policy that has only an error.
func invalid(err error) Policy { return Policy{initialized: true, err: err} }

// defaultPolicy is made when it is first used.
var defaultPolicy struct {
	once   sync.Once
	policy Policy
}

// orDefault returns p, or the default if p is the zero Policy.
func (p Policy) orDefault() Policy {
	if !p.initialized {
		defaultPolicy.once.Do(func() { defaultPolicy.policy = Zizq() })
		return defaultPolicy.policy
	}
	return p
}

// IsZero reports whether p is the zero Policy, which stands for the default.
func (p Policy) IsZero() bool { return !p.initialized }

// Err returns the first error that occurred while the policy was made: an
// argument out of range, or an invalid text or formula. It returns nil for a
// valid policy.
func (p Policy) Err() error { return p.err }

// Delay returns the formula for the shortest wait, in seconds.
func (p Policy) Delay() sqlgen.Formula { return p.orDefault().delay }

// Jitter returns the formula for the width of the random part that is added to
// the delay, in seconds.
func (p Policy) Jitter() sqlgen.Formula { return p.orDefault().jitter }

// MaxAttempts returns how many times a task is executed before it is given up:
// one more than the number of retries. 0 means no limit.
func (p Policy) MaxAttempts() int { return p.orDefault().maxAttempts }

// MaxElapsed returns how long a task can be retried, from the start of its first attempt. A task is given up if its
// next attempt would begin later. 0 means no limit.
func (p Policy) MaxElapsed() time.Duration { return p.orDefault().maxElapsed }

// StartWithin returns how long after its due time a task may begin its first attempt.
// A task that has not started by then expires: no handler runs it. 0 means no limit.
func (p Policy) StartWithin() time.Duration { return p.orDefault().startWithin }

// WithJitter returns a copy of p whose jitter is the formula, such as "30s * n"
// or "0.2 * delay". The jitter is the width of the random part that is added to
// the delay. [Policy.Err] reports an invalid formula.
func (p Policy) WithJitter(formula string) Policy {
	p = p.orDefault()
	e, err := sqlgen.ParseWith(formula, sqlgen.Scope{Jitter: true, Macros: macros()})
	if err == nil {
		var jitter sqlgen.Formula
		if jitter, err = sqlgen.CompileJitter(e, p.delay); err == nil {
			p.jitter = jitter
		}
	}
	return p.withError(err, "the jitter")
}

// WithMaxAttempts returns a copy of p that allows n executions of a task, from
// 0 to [sqlgen.MaxAttempts]. 0 means no limit. [Policy.Err] reports any other n.
func (p Policy) WithMaxAttempts(n int) Policy {
	p = p.orDefault()
	p.maxAttempts = n
	return p.withError(checkAttempts(float64(n)), "")
}

// WithMaxElapsed returns a copy of p that allows retries until d after the
// start of the first attempt. d is from 0 to [sqlgen.MaxDelay] seconds, and 0
// means no limit. [Policy.Err] reports any other d.
func (p Policy) WithMaxElapsed(d time.Duration) Policy {
	p = p.orDefault()
	p.maxElapsed = d
	return p.withError(checkSpan(clauseElapsed, d.Seconds()), "")
}

// WithStartWithin returns a copy of p under which a task expires unless its first attempt begins within d of its due
// time. d is from 0 to [sqlgen.MaxDelay] seconds, and 0 means no limit. The due time is the time of the enqueue plus
// the task's delay, or the task's RunAt. [Policy.Err] reports any other d.
//
// An expired task is cancelled, with the reason as its error. A task that has begun an attempt does not expire: to
// limit its retries, use [Policy.WithMaxElapsed].
func (p Policy) WithStartWithin(d time.Duration) Policy {
	p = p.orDefault()
	p.startWithin = d
	return p.withError(checkSpan(clauseStart, d.Seconds()), "")
}

// withError returns p, or a policy with the error if there is one. The first
// error stays. part names the part of the policy that is wrong; it may be empty.
func (p Policy) withError(err error, part string) Policy {
	switch {
	case p.err != nil || err == nil:
		return p.readable()
	case part != "":
		err = fmt.Errorf("%s: %w", part, err)
	}
	return invalid(fmt.Errorf("backoff: %w", err))
}

func checkAttempts(n float64) error {
	if !(n >= 0 && n <= sqlgen.MaxAttempts) || n != math.Trunc(n) {
		return fmt.Errorf("the limit on attempts is %v: must be a whole number from 0 (no limit) to %d", n, sqlgen.MaxAttempts)
	}
	return nil
}

// checkSpan returns an error for a limit on time that is out of range.
func checkSpan(clause string, seconds float64) error {
	if !(seconds >= 0 && seconds <= sqlgen.MaxDelay) {
		return fmt.Errorf("the limit on %s is %s: must be from 0 (no limit) to %s",
			map[string]string{clauseElapsed: "elapsed time", clauseStart: "the wait for a start"}[clause], secondsText(seconds), secondsText(sqlgen.MaxDelay))
	}
	return nil
}

// Wait returns the delay and the jitter after the n-th failure, rounded to the microsecond. The wait is drawn uniformly
// from delay to delay + jitter. For n below 1, both are 0. Neither exceeds 36,500 days.
func (p Policy) Wait(n int64) (delay, jitter time.Duration) {
	p = p.orDefault()
	return time.Duration(p.delay.Micros(n)) * time.Microsecond, time.Duration(p.jitter.Micros(n)) * time.Microsecond
}

// Key returns 16 hexadecimal digits that identify the policy by its text. Two
// policies with the same text have the same key.
func (p Policy) Key() string {
	return storable.PolicyKey(p.String())
}
