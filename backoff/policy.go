package backoff

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/falldue/falldue/sqlgen"
)

// Policy is how long a task waits after it failed, and when it is given up. It
// is immutable: the With methods return changed copies.
//
// The zero Policy is the default, that of [Zizq]: 15s + n^4 with a jitter of
// 30s * n and 26 attempts, which are 25 days.
//
// A policy made with a parameter out of range, or of a text that is no policy,
// is made all the same, so that it can initialize a variable in one line, and
// carries the error in [Policy.Err]. Whatever takes a policy checks that first.
type Policy struct {
	delay, jitter sqlgen.Formula
	maxAttempts   int
	maxElapsed    time.Duration
	made          bool // false in the zero Policy only
	err           error
}

// New makes a policy of two formulas, without limits. A nil jitter is none.
func New(delay, jitter sqlgen.Expr) Policy {
	if jitter == nil {
		jitter = sqlgen.Number{}
	}
	p := Policy{made: true}
	if p.delay, p.err = sqlgen.Compile(delay); p.err != nil {
		return failed(fmt.Errorf("backoff: the delay: %w", p.err))
	}
	if p.jitter, p.err = sqlgen.CompileJitter(jitter, p.delay); p.err != nil {
		return failed(fmt.Errorf("backoff: the jitter: %w", p.err))
	}
	return p
}

func failed(err error) Policy { return Policy{made: true, err: err} }

var standard = sync.OnceValue(Zizq)

// get returns p, or the default for the zero Policy.
func (p Policy) get() Policy {
	if !p.made {
		return standard()
	}
	return p
}

// Err is what was wrong with how the policy was made, or nil.
func (p Policy) Err() error { return p.err }

// Delay is the formula of the shortest wait.
func (p Policy) Delay() sqlgen.Formula { return p.get().delay }

// Jitter is the formula of the width of the jitter: what the wait may be
// longer than the delay.
func (p Policy) Jitter() sqlgen.Formula { return p.get().jitter }

// MaxAttempts is how many times a task is executed before it is given up: one
// more than the retries. 0 is no limit.
func (p Policy) MaxAttempts() int { return p.get().maxAttempts }

// MaxElapsed is how long after its first attempt a task is given up: it is not
// retried where the next attempt would begin later. 0 is no limit.
func (p Policy) MaxElapsed() time.Duration { return p.get().maxElapsed }

// WithJitter replaces the jitter by a formula such as "30s * n" or
// "0.2 * delay".
func (p Policy) WithJitter(formula string) Policy {
	p = p.get()
	e, err := sqlgen.ParseWith(formula, sqlgen.Scope{Jitter: true, Macros: delayMacros()})
	if err == nil {
		var jitter sqlgen.Formula
		if jitter, err = sqlgen.CompileJitter(e, p.delay); err == nil {
			p.jitter = jitter
		}
	}
	return p.orFailed(err, "the jitter")
}

// WithMaxAttempts replaces the limit on attempts; 0 is no limit.
func (p Policy) WithMaxAttempts(n int) Policy {
	p = p.get()
	p.maxAttempts = n
	return p.orFailed(checkAttempts(float64(n)), "")
}

// WithMaxElapsed replaces the limit on elapsed time; 0 is no limit.
func (p Policy) WithMaxElapsed(d time.Duration) Policy {
	p = p.get()
	p.maxElapsed = d
	return p.orFailed(checkElapsed(d.Seconds()), "")
}

// orFailed keeps the first error.
func (p Policy) orFailed(err error, of string) Policy {
	switch {
	case p.err != nil || err == nil:
		return p
	case of != "":
		err = fmt.Errorf("%s: %w", of, err)
	}
	return failed(fmt.Errorf("backoff: %w", err))
}

func checkAttempts(n float64) error {
	if !(n >= 0 && n <= sqlgen.MaxAttempts) || n != math.Trunc(n) {
		return fmt.Errorf("the limit on attempts is %v; it must be a whole number from 0, for none, to %d", n, sqlgen.MaxAttempts)
	}
	return nil
}

func checkElapsed(seconds float64) error {
	if !(seconds >= 0 && seconds <= sqlgen.MaxDelay) {
		return fmt.Errorf("the limit on elapsed time is %s; it must be from 0, for none, to %s",
			secondsText(seconds), secondsText(sqlgen.MaxDelay))
	}
	return nil
}

// Wait is the delay and the jitter after the n-th failure, to the microsecond.
// The wait is drawn uniformly from delay to delay + jitter. Both are 0 for n
// below 1, and at most 100 years.
func (p Policy) Wait(n int64) (delay, jitter time.Duration) {
	p = p.get()
	return time.Duration(p.delay.Micros(n)) * time.Microsecond, time.Duration(p.jitter.Micros(n)) * time.Microsecond
}

// Key names the policy by what it says: 16 hexadecimal digits that two policies
// share if their text is the same.
func (p Policy) Key() string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:8])
}
