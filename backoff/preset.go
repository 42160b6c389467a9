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

// Preset is a policy with named parameters. Its formulas are texts that contain the names of the parameters, and n, the
// number of failed attempts.
type Preset struct {
	// Name is the name of the preset in a policy's text.
	Name string `json:"name"`
	// Doc describes the preset in a few sentences.
	Doc string `json:"doc"`
	// Source is the origin of the formulas: author, title, section.
	Source string `json:"source"`
	// Params are the parameters. Arguments without names are assigned to the parameters in this order.
	Params []Param `json:"params,omitempty"`
	// Delay is the formula for the delay, in seconds.
	Delay string `json:"delay"`
	// Jitter is the formula for the jitter, in seconds. Empty means none.
	Jitter string `json:"jitter,omitempty"`
	// MaxAttempts and MaxElapsed are the formulas for the limits. MaxElapsed
	// is in seconds. Empty means no limit.
	MaxAttempts string `json:"max_attempts,omitempty"`
	MaxElapsed  string `json:"max_elapsed,omitempty"`

	rules []rule
}

// Param is a parameter of a preset.
type Param struct {
	// Name is the name of the parameter in a call such as arctan(max=12h).
	Name string `json:"name"`
	// Doc describes the parameter.
	Doc string `json:"doc"`
	// Kind is the kind of value that the parameter takes.
	Kind ParamKind `json:"kind"`
	// Default is the default value, as text.
	Default string `json:"default"`
	// Min and Max are the smallest and the largest allowed value. If Kind is Duration, both are in seconds.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// ParamKind is the kind of value that a parameter takes.
type ParamKind string

// The kinds of parameters.
const (
	Duration ParamKind = "duration" // a length of time
	Count    ParamKind = "count"    // a whole number
	Factor   ParamKind = "factor"   // any number
)

// rule is a condition on several parameters, and the error message if it does
// not hold.
type rule struct{ condition, message string }

// Range describes the allowed values, for example "from 1ms to 36500d".
func (p Param) Range() string {
	return "from " + p.format(p.Min) + " to " + p.format(p.Max)
}

func (p Param) format(v float64) string {
	if p.Kind == Duration {
		return secondsText(v)
	}
	return sqlgen.Number{Value: v}.String()
}

// shortest is the shortest duration in seconds, apart from 0, that a parameter may be. A
// shorter one is a mistake, with which tasks would hammer.
const shortest = 1e-3

func (p Param) check(v float64) error {
	if !(v >= p.Min && v <= p.Max) {
		return fmt.Errorf("%s is %s: must be %s", p.Name, p.format(v), p.Range())
	}
	if p.Kind == Duration && v > 0 && v < shortest {
		return fmt.Errorf("%s is %s: must be 0, or 1ms or more (a time.Duration without a unit, such as 24, counts nanoseconds)", p.Name, p.format(v))
	}
	if p.Kind == Count && v != math.Trunc(v) {
		return fmt.Errorf("%s is %v: must be a whole number", p.Name, v)
	}
	return nil
}

// Presets returns all presets, sorted by name.
func Presets() []Preset {
	list := slices.Clone(presets)
	slices.SortFunc(list, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// presets are all presets, grouped by source.
var presets = slices.Concat(curvePresets, snsPresets, visualizationPresets, jitterPresets, peerPresets)

// Policy returns the policy of the preset with the given arguments. Each argument must be a constant formula. A
// parameter without an argument has its default value. The error names the argument that is unknown, given twice, or
// out of range.
func (p Preset) Policy(args []sqlgen.MacroArg) (Policy, error) {
	policy, err := p.expand(args)
	if err != nil {
		return Policy{}, err
	}
	policy = policy.readable()
	return policy, policy.err
}

// expand is Policy, but for the check that the text of the policy can be read.
func (p Preset) expand(args []sqlgen.MacroArg) (Policy, error) {
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
			return Policy{}, errors.Join(err, fmt.Errorf("%s; the values are %s", r.message, p.assignments(names)))
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
	made := newPolicy(sqlgen.Simplify(delay), jitter)
	made.maxAttempts, made.maxElapsed = int(attempts), toDuration(elapsed)
	return made, made.err
}

// bind returns the value of each parameter: its argument, or its default.
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
			return nil, fmt.Errorf("too many arguments: %d; %s", len(args), p.paramList())
		case at < 0:
			return nil, fmt.Errorf("unknown parameter %q; %s", name, p.paramList())
		case names[name] != nil:
			return nil, fmt.Errorf("%s is given twice", name)
		}
		v, ok := sqlgen.Value(arg.Value)
		if !ok {
			return nil, fmt.Errorf("%s is %s: must be %s", name, arg.Value, p.Params[at].Range())
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

// paramList names the parameters, for an error.
func (p Preset) paramList() string {
	if len(p.Params) == 0 {
		return "there are no parameters"
	}
	names := make([]string, len(p.Params))
	for i, param := range p.Params {
		names[i] = param.Name
	}
	return "the parameters are " + strings.Join(names, ", ")
}

// assignments formats the values of the parameters, for an error.
func (p Preset) assignments(names map[string]sqlgen.Expr) string {
	values := make([]string, len(p.Params))
	for i, param := range p.Params {
		values[i] = fmt.Sprintf("%s=%s", param.Name, names[param.Name])
	}
	return strings.Join(values, ", ")
}

// evaluate returns the value of a constant formula, and 0 for an empty text.
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
		return 0, fmt.Errorf("%s is not a constant", e)
	}
	return v, nil
}

// macros returns a macro for each preset, which expands to the delay of the preset.
var macros = sync.OnceValue(func() map[string]sqlgen.Macro {
	all := make(map[string]sqlgen.Macro, len(presets))
	for _, preset := range presets {
		all[preset.Name] = func(call sqlgen.MacroCall) (sqlgen.Expr, error) {
			p, err := preset.expand(call.Args)
			if err != nil {
				return nil, err
			}
			return p.delay.Expr(), nil
		}
	}
	return all
})

// wholePreset returns a function for [sqlgen.Scope].Called that sets p to the policy of a preset, if the text is
// only a call of that preset.
func wholePreset(p *Policy) func(sqlgen.MacroCall) {
	return func(call sqlgen.MacroCall) {
		if at := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == call.Name }); call.Whole && at >= 0 {
			*p, _ = presets[at].expand(call.Args) // the macro has reported the error
		}
	}
}

// fromPreset returns the policy of a preset. The values are its arguments, in
// the order of its parameters.
func fromPreset(name string, values ...any) Policy {
	at := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if at < 0 {
		return invalid(fmt.Errorf("backoff: unknown preset %q", name))
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
		return invalid(fmt.Errorf("backoff: %w", err))
	}
	return p
}
