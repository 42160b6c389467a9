package sqlgen

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/falldue/falldue/dialect"
)

// Formula is a compiled formula f: a function of the number of failed attempts that gives a delay or a jitter in
// seconds. A Formula never changes, and any number of goroutines can use it. The zero value is the formula 0.
//
// f is total. At every n it has a value between 0 and [MaxDelay], in Go and on
// every engine, without an error, NULL, infinity or NaN:
//
//   - f(n) = 0 for n below 1, and f(n) = f([MaxAttempts]) for n above MaxAttempts.
//   - A result below 0 counts as 0, and a result above MaxDelay as MaxDelay.
//   - The absolute value of every intermediate value is limited to 1e100. An
//     intermediate value is 0 if its absolute value is below 1e-100.
//   - The functions of type [Func] have values even where mathematics defines none.
type Formula struct {
	expr Expr
	body *node
}

// maxRendered limits the nodes of the guarded tree of a formula. A jitter that
// names its delay many times could exceed it.
const maxRendered = 8192

// Compile compiles a tree into a formula. It returns an error for an invalid node,
// such as a [Delay], and for a tree beyond the limits of this package.
func Compile(e Expr) (Formula, error) {
	if err := check(e, false); err != nil {
		return Formula{}, fmt.Errorf("sqlgen: %w", err)
	}
	return compile(e, guard{})
}

// CompileJitter is like [Compile] for the formula of a jitter, in which the node
// [Delay] has the value of delay.
func CompileJitter(e Expr, delay Formula) (Formula, error) {
	if err := check(e, true); err != nil {
		return Formula{}, fmt.Errorf("sqlgen: %w", err)
	}
	return compile(e, guard{delay: delay.root()})
}

// maxDivisions limits how deep divisors that may be 0 are nested in each other.
// MySQL and MariaDB evaluate the operand of the NULLIF around such a divisor
// twice, so 45 levels would keep them busy for days.
const maxDivisions = 6

var (
	errTooLarge  = errors.New("sqlgen: the formula is too large with the delay inserted into the jitter; name the delay less often")
	errDivisions = fmt.Errorf("sqlgen: divisors that can be 0 are nested more than %d deep; keep divisors above 0 with max, as in 1 / max(n, 1)", maxDivisions)
)

func compile(e Expr, g guard) (Formula, error) {
	if n := len(e.String()); n > MaxText { // Parse could not read what String writes
		return Formula{}, fmt.Errorf("sqlgen: the formula has %d bytes with all parts inserted: must be at most %d", n, MaxText)
	}
	body := clamp(g.expr(e), 0, MaxDelay)
	if body.size(maxRendered) <= 0 {
		return Formula{}, errTooLarge
	}
	if body.divisions() > maxDivisions {
		return Formula{}, errDivisions
	}
	return Formula{e, body}, nil
}

// size returns room less the number of nodes of x; it stops early at 0.
func (x *node) size(room int) int {
	room--
	for _, arg := range x.args {
		if room <= 0 {
			break
		}
		room = arg.size(room)
	}
	return room
}

// divisions returns how deep divisors that may be 0 are nested in x.
func (x *node) divisions() int {
	deepest := 0
	for i, arg := range x.args {
		depth := arg.divisions()
		if x.op == opSafeDiv && i == 1 {
			depth++
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

var zero = number(0)

func (f Formula) root() *node {
	if f.body == nil {
		return zero
	}
	return f.body
}

// Expr returns the tree that the formula was compiled from.
func (f Formula) Expr() Expr {
	if f.expr == nil {
		return Number{}
	}
	return f.expr
}

// String returns the formula as text that [Parse], or [ParseJitter] for a jitter, parses.
func (f Formula) String() string { return f.Expr().String() }

// IsZero reports whether f is 0 at every n.
func (f Formula) IsZero() bool { return f.root().lo == 0 && f.root().hi == 0 }

// Eval returns f(n) in seconds.
func (f Formula) Eval(n int64) float64 {
	if n < 1 {
		return 0
	}
	return f.root().eval(float64(min(n, MaxAttempts)))
}

// Micros returns f(n) rounded to the nearest microsecond. Half a microsecond is rounded up.
func (f Formula) Micros(n int64) int64 { return micros(f.Eval(n)) }

func micros(seconds float64) int64 { return int64(math.Floor(float64(seconds*1e6) + 0.5)) }

// SQL returns f as an expression of the engine's double precision type, in seconds. attempts is SQL for n: a quoted
// column, or a literal. attempts occurs in the expression several times, so it must not be a placeholder that is
// matched with its argument by position. The SQL for 15s + n^4 on PostgreSQL:
//
//	case when "attempts" between 1 and 2147483647 then least(15::float8 + power("attempts"::float8, 4::float8), 3153600000::float8)
//	     when "attempts" > 2147483647 then 3153600000::float8 else 0::float8 end
func (f Formula) SQL(d dialect.Dialect, attempts string) string {
	r := renderer{d: d, n: d.Cast(attempts, dialect.Double)}
	r.node(f.root(), sqlSum)
	return f.byAttempts(attempts, r.String(), d.Literal(f.Eval(MaxAttempts)), d.Literal(0))
}

// MicrosSQL returns f as an expression of a 64-bit integer type, in
// microseconds, rounded as by [Formula.Micros]. attempts is as for [Formula.SQL].
func (f Formula) MicrosSQL(d dialect.Dialect, attempts string) string {
	most := strconv.FormatInt(f.Micros(MaxAttempts), 10)
	if f.root().op == opNum {
		return f.byAttempts(attempts, most, most, "0")
	}
	r := renderer{d: d, n: d.Cast(attempts, dialect.Double)}
	r.WriteString("floor(")
	r.node(f.root(), sqlProduct)
	r.WriteString(" * ")
	r.number(1e6)
	r.WriteString(" + ")
	r.number(0.5)
	r.WriteString(")")
	return f.byAttempts(attempts, d.Cast(r.String(), dialect.Int), most, "0")
}

// byAttempts returns a CASE that chooses by n. Comparing the column as it is
// keeps n within the range that the guards were made for, whatever its type, and
// NULL takes the last branch. A CASE evaluates only the branch that it takes.
func (f Formula) byAttempts(attempts, inside, above, below string) string {
	if f.root().op == opNum {
		return fmt.Sprintf("case when %s >= 1 then %s else %s end", attempts, inside, below)
	}
	return fmt.Sprintf("case when %s between 1 and %d then %s when %s > %d then %s else %s end",
		attempts, MaxAttempts, inside, attempts, MaxAttempts, above, below)
}

// Value returns the value, in seconds, of a formula that depends on neither n
// nor the delay, such as the argument of a preset. The value is not limited to
// the range of delays. ok is false if e depends on n or the delay, or is
// invalid.
func Value(e Expr) (seconds float64, ok bool) {
	if !constant(e) || check(e, false) != nil {
		return 0, false
	}
	x := guard{}.expr(e)
	return x.num, x.op == opNum
}
