package backoff

import (
	"errors"
	"fmt"
	"strings"

	"github.com/falldue/falldue/sqlgen"
)

// Override is a change of policies: it turns each policy into another one. The zero
// Override changes nothing. An Override is immutable.
type Override struct {
	text string
	body map[string]clause
}

// clause is the body of a clause and where it begins in the text.
type clause struct {
	body string
	at   int
}

// named returns the names in an override of a policy's original formula. own is an alias.
func named(original sqlgen.Expr) map[string]sqlgen.Expr {
	return map[string]sqlgen.Expr{"original": original, "own": original}
}

// ParseOverride parses the text of an override. The text has the clauses of a policy (see [Parse]). Each clause can be
// omitted. In the delay, original is the delay of the original policy. In the jitter, original is that policy's jitter.
// own is an alias of original.
//
//	4 * original                  all delays four times as long
//	max(original, 1h)             delays of at least an hour
//	5m; jitter 1m                 another delay, and another jitter
//	attempts 50                   another limit
//	start 0s                      new tasks no longer expire
//	original; jitter 0.5 * delay  delay is the new delay, as in a policy
//
// An omitted clause changes nothing. There is one exception: if the delay is only a preset, the preset also sets the
// jitter and the limits that the text omits. In an unchanged jitter, delay still stands for the original policy's
// delay, so a longer delay does not widen the jitter. A jitter is drawn when a task fails, and stays with the task
// after the override has ended.
//
// If a formula cannot be parsed, the error wraps a *[sqlgen.SyntaxError]. Its Pos is an offset in text.
func ParseOverride(text string) (Override, error) {
	o, err := parseOverride(text)
	if err == nil {
		// A policy whose formulas are no constants finds out what is wrong with any.
		err = o.Of(New(sqlgen.N{}, sqlgen.N{})).Err()
	}
	if err != nil {
		return Override{}, fmt.Errorf("backoff: %w", withoutPrefix(err))
	}
	return o, nil
}

// withoutPrefix returns the error that the package has put its name before.
func withoutPrefix(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "backoff: ") {
		return inner
	}
	return err
}

// OverrideWith returns the override that replaces every policy with p.
func OverrideWith(p Policy) (Override, error) {
	if p.err != nil {
		return Override{}, p.err
	}
	p = p.orDefault()
	return ParseOverride(fmt.Sprintf("%s %s; %s %s; %s %d; %s %s; %s %s", clauseDelay, p.delay, clauseJitter, p.jitter,
		clauseAttempts, p.maxAttempts, clauseElapsed, durationExpr(p.maxElapsed), clauseStart, durationExpr(p.startWithin)))
}

func parseOverride(text string) (Override, error) {
	o := Override{text: strings.TrimSpace(text), body: map[string]clause{}}
	if len(text) > maxText {
		return o, fmt.Errorf("the text has %d bytes; a policy has at most %d", len(text), maxText)
	}
	text = o.text
	for pos := 0; pos <= len(text); {
		end := len(text)
		if i := strings.IndexAny(text[pos:], ";\n"); i >= 0 {
			end = pos + i
		}
		name, body, at := splitClause(text[pos:end], len(o.body) == 0)
		at += pos
		pos = end + 1
		if name == "" && strings.TrimSpace(body) == "" {
			continue
		}
		if name == "" {
			return o, fmt.Errorf("unknown clause %q; a clause begins with one of %s", strings.TrimSpace(body), strings.Join(clauses, ", "))
		}
		if _, seen := o.body[name]; seen {
			return o, fmt.Errorf("the override has two clauses %q", name)
		}
		o.body[name] = clause{body, at}
	}
	if len(o.body) == 0 {
		return o, errors.New("the text is empty; an override has a clause, such as 4 * original or attempts 50")
	}
	return o, nil
}

// String returns the text of the override, which [ParseOverride] accepts.
func (o Override) String() string { return o.text }

// UsesOriginal reports whether the delay depends on the delay of the original policy.
func (o Override) UsesOriginal() bool {
	if _, ok := o.body[clauseDelay]; !ok {
		return true
	}
	short, long := o.Of(New(sqlgen.Number{Value: 1}, nil)), o.Of(New(sqlgen.N{}, nil))
	return short.Delay().String() != long.Delay().String()
}

// Of returns the policy that results from applying the override to the original policy. [Policy.Err] reports an invalid
// result, such as formulas that become too large.
func (o Override) Of(own Policy) Policy {
	own = own.orDefault()
	if own.err != nil || len(o.body) == 0 {
		return own
	}
	p, err := o.of(own)
	if err != nil {
		return invalid(fmt.Errorf("backoff: %w", err))
	}
	return p.readable()
}

func (o Override) of(own Policy) (Policy, error) {
	p := own
	if c, ok := o.body[clauseDelay]; ok {
		if err := p.override(own, c.body); err != nil {
			return Policy{}, inWholeText(err, o.text, c.at)
		}
	}
	if c, ok := o.body[clauseJitter]; ok {
		jitter, err := own.jitterOf(own.jitter.String())
		if err != nil {
			return Policy{}, err
		}
		e, err := sqlgen.ParseWith(c.body, sqlgen.Scope{Jitter: true, Names: named(jitter), Macros: macros()})
		if err == nil {
			p.jitter, err = sqlgen.CompileJitter(e, p.delay)
		}
		if err != nil {
			return Policy{}, inWholeText(err, o.text, c.at)
		}
	}
	for _, name := range []string{clauseAttempts, clauseElapsed, clauseStart} {
		if c, ok := o.body[name]; ok {
			if err := p.setClause(name, c.body); err != nil {
				return Policy{}, inWholeText(err, o.text, c.at)
			}
		}
	}
	return p, nil
}

// override sets the delay that an override's clause gives, and all else of a preset if the
// clause is only a preset. The jitter of own's delay stays.
func (p *Policy) override(own Policy, body string) error {
	var preset Policy
	scope := sqlgen.Scope{Names: named(own.delay.Expr()), Macros: macros(), Called: wholePreset(&preset)}
	e, err := sqlgen.ParseWith(body, scope)
	if err != nil {
		return err
	}
	if preset.initialized {
		*p = preset
		return p.err
	}
	if p.delay, err = sqlgen.Compile(e); err != nil {
		return err
	}
	jitter, err := own.jitterOf(own.jitter.String())
	if err == nil {
		p.jitter, err = sqlgen.CompileJitter(jitter, p.delay)
	}
	return err
}

// jitterOf parses the formula of a jitter, in which the name delay is the policy's delay.
func (p Policy) jitterOf(formula string) (sqlgen.Expr, error) {
	return sqlgen.ParseWith(formula, sqlgen.Scope{Jitter: true, Names: map[string]sqlgen.Expr{"delay": p.delay.Expr()}})
}
