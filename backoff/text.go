package backoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue/sqlgen"
)

// The words that begin the clauses of a policy's text.
const (
	clauseDelay    = "delay"
	clauseJitter   = "jitter"
	clauseAttempts = "attempts"
	clauseElapsed  = "elapsed"
	clauseStart    = "start"
)

var clauses = []string{clauseDelay, clauseJitter, clauseAttempts, clauseElapsed, clauseStart}

// maxText is the largest size of a policy's text in bytes. It has room for two
// formulas and the words around them.
const maxText = 2*sqlgen.MaxText + 256

// Parse parses the text of a policy. The text consists of clauses that are
// separated by semicolons or line ends. Each clause may occur once, and the
// delay comes first.
//
//	delay FORMULA       the word delay may be omitted
//	jitter FORMULA      the width of the random part that is added to the delay;
//	                    it may use the name delay; defaults to 0
//	attempts NUMBER     executions, not retries; defaults to no limit
//	elapsed DURATION    from the start of the first attempt to the last retry;
//	                    defaults to no limit
//	start DURATION      from the due time to the first attempt; defaults to no limit
//
// If the delay is only a preset, as in "zizq(base=5s); attempts 10",
// the jitter and the limits default to the preset's.
//
// If a formula cannot be parsed, the error wraps a *[sqlgen.SyntaxError]. Its Pos is an offset in text.
func Parse(text string) (Policy, error) {
	p, err := parse(text)
	if err != nil {
		return Policy{}, fmt.Errorf("backoff: %w", err)
	}
	if p = p.readable(); p.err != nil {
		return Policy{}, p.err
	}
	return p, nil
}

// ParseDeferred is like [Parse] but returns no error, so that it can initialize a variable. If the text is invalid,
// [Policy.Err] of the returned policy returns the error.
func ParseDeferred(text string) Policy {
	p, err := Parse(text)
	if err != nil {
		return invalid(err)
	}
	return p
}

func parse(text string) (Policy, error) {
	if len(text) > maxText {
		return Policy{}, fmt.Errorf("the text has %d bytes; a policy has at most %d", len(text), maxText)
	}
	var p Policy
	seen := map[string]bool{}
	for pos := 0; pos <= len(text); {
		end := len(text)
		if i := strings.IndexAny(text[pos:], ";\n"); i >= 0 {
			end = pos + i
		}
		name, body, at := splitClause(text[pos:end], len(seen) == 0)
		at += pos
		pos = end + 1
		if name == "" && strings.TrimSpace(body) == "" {
			continue
		}
		switch {
		case name == "":
			return Policy{}, fmt.Errorf("unknown clause %q; a clause begins with one of %s", strings.TrimSpace(body), strings.Join(clauses, ", "))
		case seen[name]:
			return Policy{}, fmt.Errorf("the policy has two clauses %q", name)
		case len(seen) == 0 && name != clauseDelay:
			return Policy{}, fmt.Errorf("the policy begins with %q; the delay comes first", name)
		}
		seen[name] = true
		if err := p.setClause(name, body); err != nil {
			return Policy{}, inWholeText(err, text, at)
		}
	}
	if len(seen) == 0 {
		return Policy{}, errors.New("the text is empty; a policy needs a delay, such as 15s + n^4")
	}
	return p, p.err
}

// splitClause splits a clause into its word and its body, which begins at byte
// at. The first clause may have no word.
func splitClause(text string, first bool) (name, body string, at int) {
	start := len(text) - len(strings.TrimLeft(text, " \t\r"))
	for _, word := range clauses {
		rest, found := strings.CutPrefix(text[start:], word)
		if found && strings.TrimLeft(rest, " \t\r") != rest {
			return word, rest, start + len(word)
		}
	}
	if first && start < len(text) {
		return clauseDelay, text, 0
	}
	return "", text, 0
}

// inWholeText returns err with the position of a syntax error counted in text,
// where the clause begins at byte at.
func inWholeText(err error, text string, at int) error {
	if syntax, ok := errors.AsType[*sqlgen.SyntaxError](err); ok {
		return &sqlgen.SyntaxError{Text: text, Pos: syntax.Pos + at, Msg: syntax.Msg}
	}
	return err
}

// setClause sets the part of p that a clause names.
func (p *Policy) setClause(name, body string) error {
	switch name {
	case clauseDelay:
		return p.setDelay(body)
	case clauseJitter:
		e, err := sqlgen.ParseWith(body, sqlgen.Scope{Jitter: true, Macros: macros()})
		if err != nil {
			return err
		}
		p.jitter, err = sqlgen.CompileJitter(e, p.delay)
		return err
	case clauseAttempts:
		n, err := parseConstant(body)
		if err == nil {
			err = checkAttempts(n)
		}
		p.maxAttempts = int(n)
		return err
	default:
		seconds, err := parseConstant(body)
		if err == nil {
			err = checkSpan(name, seconds)
		}
		if name == clauseStart {
			p.startWithin = toDuration(seconds)
		} else {
			p.maxElapsed = toDuration(seconds)
		}
		return err
	}
}

// setDelay sets the delay. If body is only a preset, setDelay also sets the
// jitter and the limits of that preset.
func (p *Policy) setDelay(body string) error {
	var base Policy
	e, err := sqlgen.ParseWith(body, sqlgen.Scope{Macros: macros(), Called: wholePreset(&base)})
	if err != nil {
		return err
	}
	if *p = base; !base.initialized {
		*p = newPolicy(e, nil)
	}
	return p.err
}

// parseConstant parses a formula that is a constant and returns its value.
func parseConstant(text string) (float64, error) {
	e, err := sqlgen.Parse(text)
	if err != nil {
		return 0, err
	}
	v, ok := sqlgen.Value(e)
	if !ok {
		return 0, fmt.Errorf("a limit must be a constant, not %s", e)
	}
	return v, nil
}

// String returns the text of the policy, which [Parse] accepts.
func (p Policy) String() string {
	p = p.orDefault()
	text := clauseDelay + " " + p.delay.String()
	if !p.jitter.IsZero() {
		text += "; " + clauseJitter + " " + p.jitter.String()
	}
	if p.maxAttempts != 0 {
		text += "; " + clauseAttempts + " " + strconv.Itoa(p.maxAttempts)
	}
	if p.maxElapsed != 0 {
		text += "; " + clauseElapsed + " " + durationExpr(p.maxElapsed).String()
	}
	if p.startWithin != 0 {
		text += "; " + clauseStart + " " + durationExpr(p.startWithin).String()
	}
	return text
}

func toDuration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// durationExpr returns d as a whole number of the largest unit that fits, such
// as 90m, and not 1.5h or 5400s.
func durationExpr(d time.Duration) sqlgen.Number {
	for _, u := range []struct {
		size time.Duration
		unit sqlgen.Unit
	}{{24 * time.Hour, sqlgen.Day}, {time.Hour, sqlgen.Hour}, {time.Minute, sqlgen.Minute}, {time.Second, sqlgen.Second}} {
		if d%u.size == 0 && d != 0 {
			return sqlgen.Number{Value: float64(d / u.size), Unit: u.unit}
		}
	}
	if d == 0 {
		return sqlgen.Number{Unit: sqlgen.Second}
	}
	return sqlgen.Number{Value: float64(d) / float64(time.Millisecond), Unit: sqlgen.Millisecond}
}

// secondsText formats a number of seconds for an error.
func secondsText(seconds float64) string {
	if math.Abs(seconds) > sqlgen.MaxDelay {
		return sqlgen.Number{Value: seconds, Unit: sqlgen.Second}.String()
	}
	return durationExpr(toDuration(seconds)).String()
}

// MarshalText returns the text of the policy, which [Parse] accepts. It fails
// with the error of [Policy.Err].
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), p.err }

// UnmarshalText parses a text as [Parse] does. After an error, p is unchanged.
func (p *Policy) UnmarshalText(text []byte) error {
	read, err := Parse(string(text))
	if err == nil {
		*p = read
	}
	return err
}

// policyJSON is the JSON form of a policy.
type policyJSON struct {
	Delay       string `json:"delay"`
	Jitter      string `json:"jitter,omitempty"`
	MaxAttempts int    `json:"max_attempts,omitempty"`
	MaxElapsed  string `json:"max_elapsed,omitempty"`
	StartWithin string `json:"start_within,omitempty"`
}

// MarshalJSON returns an object:
//
//	{"delay": "15s + n^4", "jitter": "30s * n", "max_attempts": 26, "max_elapsed": "30d"}
//
// A jitter or a limit that the policy does not have is omitted. MarshalJSON
// fails with the error of [Policy.Err].
func (p Policy) MarshalJSON() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	p = p.orDefault()
	form := policyJSON{Delay: p.delay.String(), MaxAttempts: p.maxAttempts}
	if !p.jitter.IsZero() {
		form.Jitter = p.jitter.String()
	}
	if p.maxElapsed != 0 {
		form.MaxElapsed = durationExpr(p.maxElapsed).String()
	}
	if p.startWithin != 0 {
		form.StartWithin = durationExpr(p.startWithin).String()
	}
	return json.Marshal(form)
}

// UnmarshalJSON parses the object that [Policy.MarshalJSON] returns, or a string with a policy's text. After an error,
// p is unchanged.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return p.UnmarshalText([]byte(text))
	}
	var form policyJSON
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return fmt.Errorf("backoff: a policy must be an object with a delay, or a string: %w", err)
	}
	read, err := form.policy()
	if err != nil {
		return fmt.Errorf("backoff: %w", err)
	}
	*p = read
	return nil
}

func (f policyJSON) policy() (Policy, error) {
	var p Policy
	if err := p.setClause(clauseDelay, f.Delay); err != nil {
		return Policy{}, err
	}
	if f.Jitter != "" {
		if err := p.setClause(clauseJitter, f.Jitter); err != nil {
			return Policy{}, err
		}
	}
	if f.MaxElapsed != "" {
		if err := p.setClause(clauseElapsed, f.MaxElapsed); err != nil {
			return Policy{}, err
		}
	}
	if f.StartWithin != "" {
		if err := p.setClause(clauseStart, f.StartWithin); err != nil {
			return Policy{}, err
		}
	}
	if f.MaxAttempts != 0 {
		p = p.WithMaxAttempts(f.MaxAttempts)
	}
	p = p.readable()
	return p, p.err
}
