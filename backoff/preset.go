package backoff

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/sqlgen"
)

// Preset is a policy with named parameters. Its formulas are in the language of
// policies, where the parameters are names like n.
type Preset struct {
	// Name is how text calls it.
	Name string `json:"name"`
	// Doc says in a sentence or two what it does.
	Doc string `json:"doc"`
	// Source is whose formula it is: author, title, section.
	Source string `json:"source"`
	// Params are its parameters, in the order in which they may be given
	// without their names.
	Params []Param `json:"params,omitempty"`
	// Delay is its formula.
	Delay string `json:"delay"`
	// Jitter is the formula of its jitter; empty is none.
	Jitter string `json:"jitter,omitempty"`
	// MaxAttempts and MaxElapsed are formulas of its limits; empty is none.
	MaxAttempts string `json:"max_attempts,omitempty"`
	MaxElapsed  string `json:"max_elapsed,omitempty"`

	rules []rule
}

// Param is a parameter of a preset.
type Param struct {
	Name string `json:"name"`
	// Doc says what it is.
	Doc  string    `json:"doc"`
	Kind ParamKind `json:"kind"`
	// Default is the text of the value that it has if none is given.
	Default string `json:"default"`
	// Min and Max are the least and the largest value that is accepted, in
	// seconds if it is a duration.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// ParamKind is what a parameter measures.
type ParamKind string

// The kinds of parameters.
const (
	Duration ParamKind = "duration"
	Count    ParamKind = "count"  // a whole number
	Factor   ParamKind = "factor" // any number
)

// rule is a condition on several parameters, and how to say it.
type rule struct{ condition, must string }

// Range writes the values that the parameter accepts, as "from 1ms to 36500d".
func (p Param) Range() string {
	return "from " + p.text(p.Min) + " to " + p.text(p.Max)
}

func (p Param) text(v float64) string {
	if p.Kind == Duration {
		return secondsText(v)
	}
	return sqlgen.Number{Value: v}.String()
}

func (p Param) check(v float64) error {
	if !(v >= p.Min && v <= p.Max) {
		return fmt.Errorf("%s is %s; it must be %s", p.Name, p.text(v), p.Range())
	}
	if p.Kind == Count && v != math.Trunc(v) {
		return fmt.Errorf("%s is %v; it must be a whole number", p.Name, v)
	}
	return nil
}

// Presets lists all presets by their names.
func Presets() []Preset {
	list := slices.Clone(presets)
	slices.SortFunc(list, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// presets is the table of all presets, in the order of the documentation.
var presets = slices.Concat(curvePresets, snsPresets, visualizationPresets, jitterPresets, peerPresets)

// Policy makes the preset's policy of arguments, each a constant formula.
func (p Preset) Policy(args []sqlgen.MacroArg) (Policy, error) {
	policy, err := p.policy(args)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return policy, nil
}

func (p Preset) policy(args []sqlgen.MacroArg) (Policy, error) {
	names, err := p.bind(args)
	if err != nil {
		return Policy{}, err
	}
	scope := sqlgen.Scope{Names: names}
	for _, r := range p.rules {
		if holds, err := evaluate("if("+r.condition+", 1, 0)", scope); err != nil || holds != 1 {
			return Policy{}, errors.Join(err, fmt.Errorf("%s; it has %s", r.must, p.show(names)))
		}
	}
	delay, err := sqlgen.ParseWith(p.Delay, scope)
	if err != nil {
		return Policy{}, err
	}
	var jitter sqlgen.Expr
	if p.Jitter != "" {
		if jitter, err = sqlgen.ParseWith(p.Jitter, sqlgen.Scope{Names: names, Jitter: true}); err != nil {
			return Policy{}, err
		}
	}
	attempts, err := evaluate(p.MaxAttempts, scope)
	if err != nil {
		return Policy{}, err
	}
	elapsed, err := evaluate(p.MaxElapsed, scope)
	if err != nil {
		return Policy{}, err
	}
	if jitter != nil {
		jitter = sqlgen.Simplify(jitter)
	}
	made := New(sqlgen.Simplify(delay), jitter)
	made.maxAttempts, made.maxElapsed = int(attempts), toDuration(elapsed)
	return made, made.err
}

// bind gives each parameter its argument or its default.
func (p Preset) bind(args []sqlgen.MacroArg) (map[string]sqlgen.Expr, error) {
	names := make(map[string]sqlgen.Expr, len(p.Params))
	for i, arg := range args {
		name := arg.Name
		if name == "" && i < len(p.Params) {
			name = p.Params[i].Name
		}
		at := slices.IndexFunc(p.Params, func(param Param) bool { return param.Name == name })
		switch {
		case at < 0 && name == "":
			return nil, fmt.Errorf("%d arguments are given; %s", len(args), p.takes())
		case at < 0:
			return nil, fmt.Errorf("there is no parameter %q; %s", name, p.takes())
		case names[name] != nil:
			return nil, fmt.Errorf("%s is given twice", name)
		}
		v, ok := sqlgen.Value(arg.Value)
		if !ok {
			return nil, fmt.Errorf("%s is %s; it must be %s", name, arg.Value, p.Params[at].Range())
		}
		if err := p.Params[at].check(v); err != nil {
			return nil, err
		}
		names[name] = arg.Value
	}
	for _, param := range p.Params {
		if names[param.Name] == nil {
			value, err := sqlgen.Parse(param.Default)
			if err != nil {
				return nil, err
			}
			names[param.Name] = value
		}
	}
	return names, nil
}

func (p Preset) takes() string {
	if len(p.Params) == 0 {
		return "it takes none"
	}
	names := make([]string, len(p.Params))
	for i, param := range p.Params {
		names[i] = param.Name
	}
	return "the parameters are " + strings.Join(names, ", ")
}

func (p Preset) show(names map[string]sqlgen.Expr) string {
	values := make([]string, len(p.Params))
	for i, param := range p.Params {
		values[i] = fmt.Sprintf("%s=%s", param.Name, names[param.Name])
	}
	return strings.Join(values, ", ")
}

// evaluate is the value of a constant formula, 0 for none.
func evaluate(text string, scope sqlgen.Scope) (float64, error) {
	if text == "" {
		return 0, nil
	}
	e, err := sqlgen.ParseWith(text, scope)
	if err != nil {
		return 0, err
	}
	v, ok := sqlgen.Value(e)
	if !ok {
		return 0, fmt.Errorf("%s is no constant", e)
	}
	return v, nil
}

// macros makes the presets known to a formula, in which each stands for its
// delay. used is told of every use.
func macros(used func(Policy, sqlgen.MacroCall)) map[string]sqlgen.Macro {
	known := make(map[string]sqlgen.Macro, len(presets))
	for _, preset := range presets {
		known[preset.Name] = func(call sqlgen.MacroCall) (sqlgen.Expr, error) {
			p, err := preset.Policy(call.Args)
			if err != nil {
				return nil, err
			}
			used(p, call)
			return p.delay.Expr(), nil
		}
	}
	return known
}

// delayMacros are the presets where only their delay matters.
var delayMacros = sync.OnceValue(func() map[string]sqlgen.Macro {
	return macros(func(Policy, sqlgen.MacroCall) {})
})

// preset makes the policy of a preset from Go values, in the order of its
// parameters.
func preset(name string, values ...any) Policy {
	at := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if at < 0 {
		return failed(fmt.Errorf("backoff: unknown preset %q", name))
	}
	args := make([]sqlgen.MacroArg, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case time.Duration:
			args[i].Value = durationExpr(v)
		case int:
			args[i].Value = sqlgen.Number{Value: float64(v)}
		case float64:
			args[i].Value = sqlgen.Number{Value: v}
		}
	}
	p, err := presets[at].Policy(args)
	if err != nil {
		return failed(fmt.Errorf("backoff: %w", err))
	}
	return p
}
