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

// The clauses of a policy's text.
const (
	clauseDelay    = "delay"
	clauseJitter   = "jitter"
	clauseAttempts = "attempts"
	clauseElapsed  = "elapsed"
)

var clauses = []string{clauseDelay, clauseJitter, clauseAttempts, clauseElapsed}

// maxText is the longest text of a policy: two formulas and their words.
const maxText = 2*sqlgen.MaxText + 256

// Parse reads the text of a policy: clauses with a semicolon or a line's end
// between them, each once, the delay first.
//
//	delay FORMULA       the word delay may be left out
//	jitter FORMULA      none by default; the name delay stands for the delay
//	attempts NUMBER     no limit by default; it counts executions, not retries
//	elapsed DURATION    no limit by default
//
// Where the delay is a preset alone, as in "zizq(base=5s); attempts 10", the
// preset's jitter and limits are the defaults. A formula that is wrong gives a
// *[sqlgen.SyntaxError] whose position is one in text.
func Parse(text string) (Policy, error) {
	p, err := parse(text)
	if err != nil {
		return Policy{}, fmt.Errorf("backoff: %w", err)
	}
	return p, nil
}

// ParseDeferred is Parse for a variable's initializer: an error is kept for Err.
func ParseDeferred(text string) Policy {
	p, err := Parse(text)
	if err != nil {
		return failed(err)
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
			return Policy{}, fmt.Errorf("the clause %q of the policy begins with none of %s", strings.TrimSpace(body), strings.Join(clauses, ", "))
		case seen[name]:
			return Policy{}, fmt.Errorf("the policy has two clauses %q", name)
		case len(seen) == 0 && name != clauseDelay:
			return Policy{}, fmt.Errorf("the policy begins with %q; the delay comes first", name)
		}
		seen[name] = true
		if err := p.clause(name, body); err != nil {
			return Policy{}, within(err, text, at)
		}
	}
	if len(seen) == 0 {
		return Policy{}, errors.New("the text is empty; a policy is at least a delay, such as 15s + n^4")
	}
	return p, p.err
}

// splitClause cuts the clause's word off. The first clause may go without.
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

// within moves a syntax error's position from a clause to the whole text.
func within(err error, text string, at int) error {
	if syntax, ok := errors.AsType[*sqlgen.SyntaxError](err); ok {
		return &sqlgen.SyntaxError{Text: text, Pos: syntax.Pos + at, Msg: syntax.Msg}
	}
	return err
}

func (p *Policy) clause(name, body string) error {
	switch name {
	case clauseDelay:
		return p.setDelay(body)
	case clauseJitter:
		e, err := sqlgen.ParseWith(body, sqlgen.Scope{Jitter: true, Macros: delayMacros()})
		if err != nil {
			return err
		}
		p.jitter, err = sqlgen.CompileJitter(e, p.delay)
		return err
	case clauseAttempts:
		n, err := value(body)
		if err == nil {
			err = checkAttempts(n)
		}
		p.maxAttempts = int(n)
		return err
	default:
		seconds, err := value(body)
		if err == nil {
			err = checkElapsed(seconds)
		}
		p.maxElapsed = toDuration(seconds)
		return err
	}
}

// setDelay reads the delay, and takes over a whole policy if it is a preset.
func (p *Policy) setDelay(body string) error {
	var whole Policy
	macros := macros(func(preset Policy, call sqlgen.MacroCall) {
		if call.Whole {
			whole = preset
		}
	})
	e, err := sqlgen.ParseWith(body, sqlgen.Scope{Macros: macros})
	if err != nil {
		return err
	}
	if *p = whole; !whole.made {
		*p = New(e, nil)
	}
	return p.err
}

// value reads a formula that is a constant.
func value(text string) (float64, error) {
	e, err := sqlgen.Parse(text)
	if err != nil {
		return 0, err
	}
	v, ok := sqlgen.Value(e)
	if !ok {
		return 0, fmt.Errorf("a limit is a constant, not %s", e)
	}
	return v, nil
}

// String writes the policy as Parse reads it.
func (p Policy) String() string {
	p = p.get()
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
	return text
}

func toDuration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// durationExpr is the shortest literal for d: 90m and not 1.5h or 5400s.
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

// secondsText writes a number of seconds for an error.
func secondsText(seconds float64) string {
	if math.Abs(seconds) > sqlgen.MaxDelay {
		return sqlgen.Number{Value: seconds, Unit: sqlgen.Second}.String()
	}
	return durationExpr(toDuration(seconds)).String()
}

// MarshalText writes the policy as Parse reads it.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), p.err }

// UnmarshalText reads what Parse reads.
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
}

// MarshalJSON writes an object:
//
//	{"delay": "15s + n^4", "jitter": "30s * n", "max_attempts": 26, "max_elapsed": "30d"}
//
// of which all but the delay are left out where there is none.
func (p Policy) MarshalJSON() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	p = p.get()
	form := policyJSON{Delay: p.delay.String(), MaxAttempts: p.maxAttempts}
	if !p.jitter.IsZero() {
		form.Jitter = p.jitter.String()
	}
	if p.maxElapsed != 0 {
		form.MaxElapsed = durationExpr(p.maxElapsed).String()
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads such an object, or a string with a policy's text.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return p.UnmarshalText([]byte(text))
	}
	var form policyJSON
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return fmt.Errorf("backoff: a policy is an object with a delay, or a text: %w", err)
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
	if err := p.clause(clauseDelay, f.Delay); err != nil {
		return Policy{}, err
	}
	if f.Jitter != "" {
		if err := p.clause(clauseJitter, f.Jitter); err != nil {
			return Policy{}, err
		}
	}
	if f.MaxElapsed != "" {
		if err := p.clause(clauseElapsed, f.MaxElapsed); err != nil {
			return Policy{}, err
		}
	}
	if f.MaxAttempts != 0 {
		p = p.WithMaxAttempts(f.MaxAttempts)
	}
	return p, p.err
}
