package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

// band formats the shortest and the longest of durations, or one if both are the same.
func band(shortest, longest time.Duration) string {
	if shortest == longest {
		return words.Span(shortest)
	}
	return words.Span(shortest) + " – " + words.Span(longest)
}

// spanValue is the value of a flag that takes a duration, in days, too.
type spanValue struct {
	d           *time.Duration
	least, most time.Duration
}

// The longest durations of flags.
const (
	longestSpan  = 36_500 * 24 * time.Hour
	longestLimit = 30 * 24 * time.Hour
)

func spanVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	boundedSpanVar(flags, p, name, value, 0, longestSpan, usage)
}

// boundedSpanVar is spanVar for a flag that takes least to most.
func boundedSpanVar(flags *pflag.FlagSet, p *time.Duration, name string, value, least, most time.Duration, usage string) {
	*p = value
	flags.Var(&spanValue{p, least, most}, name, usage)
	flags.Lookup(name).DefValue = shortSpan(value)
}

// shortSpan returns a duration as help shows it: 1m instead of 1m0s, and nothing for zero.
func shortSpan(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// hideDefault makes help show no default of a flag whose usage names it.
func hideDefault(flags *pflag.FlagSet, name string) { flags.Lookup(name).DefValue = "" }

// Set parses the value.
func (v *spanValue) Set(text string) error {
	d, err := ops.ParseDuration(text)
	if err != nil {
		return errors.New("must be a duration such as 90s, 48h, 2d or 1d12h")
	}
	if d < v.least || d > v.most {
		return fmt.Errorf("must be a duration from %v to %dd", v.least, v.most/(24*time.Hour))
	}
	*v.d = d
	return nil
}

func (v *spanValue) String() string {
	if v.d == nil { // pflag makes a zero value to learn whether the default is one
		return "0s"
	}
	return v.d.String()
}

// Type is what help calls the value.
func (v *spanValue) Type() string { return "duration" }

// rateValue is the value of a flag that takes a number of tasks a second.
type rateValue float64

// mostRate is the greatest rate that a flag takes.
const mostRate = 1_000_000

func rateVar(flags *pflag.FlagSet, p *float64, name string, value float64, usage string) {
	*p = value
	flags.Var((*rateValue)(p), name, usage)
}

// Set parses the value.
func (v *rateValue) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= mostRate) {
		return fmt.Errorf("must be a number of tasks per second, above 0 and at most %s, such as 50 or 0.5", grouped(mostRate))
	}
	*v = rateValue(n)
	return nil
}

func (v *rateValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

// Type is what help calls the value.
func (v *rateValue) Type() string { return "float" }

// numberValue is the value of a flag that takes a whole number from least to most.
type numberValue[T int | int64] struct {
	n           *T
	least, most T
}

func numberVar[T int | int64](flags *pflag.FlagSet, p *T, name string, value, least, most T, usage string) {
	*p = value
	flags.Var(&numberValue[T]{p, least, most}, name, usage)
}

// countVar is numberVar for a flag that takes 1 to most.
func countVar(flags *pflag.FlagSet, p *int, name string, value, most int, usage string) {
	numberVar(flags, p, name, value, 1, most, usage)
}

// Set parses the value.
func (v *numberValue[T]) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(v.least) || n > int64(v.most) {
		return fmt.Errorf("must be a whole number from %s to %s", grouped(int64(v.least)), grouped(int64(v.most)))
	}
	*v.n = T(n)
	return nil
}

func (v *numberValue[T]) String() string {
	if v.n == nil { // pflag makes a zero value to learn whether the default is one
		return "0"
	}
	return strconv.FormatInt(int64(*v.n), 10)
}

// Type is what help calls the value.
func (v *numberValue[T]) Type() string { return "int" }

// checkedValue is the value of a flag that takes some texts.
type checkedValue struct {
	p     *string
	check func(string) error
}

// choiceVar defines a flag that takes one of several names.
func choiceVar(flags *pflag.FlagSet, p *string, name string, allowed []string, usage string) {
	flags.Var(&checkedValue{p, func(text string) error {
		if !slices.Contains(allowed, text) {
			return errors.New("must be " + oneOf(allowed))
		}
		return nil
	}}, name, usage)
}

// textVar defines a flag that takes a text of at most most bytes.
func textVar(flags *pflag.FlagSet, p *string, name, value string, most int, usage string) {
	*p = value
	flags.Var(&checkedValue{p, func(text string) error {
		if len(text) > most {
			return fmt.Errorf("has %s bytes: must have at most %s", grouped(int64(len(text))), grouped(int64(most)))
		}
		return nil
	}}, name, usage)
}

// Set checks the value.
func (v *checkedValue) Set(text string) error {
	if err := v.check(text); err != nil {
		return err
	}
	*v.p = text
	return nil
}

func (v *checkedValue) String() string {
	if v.p == nil { // pflag makes a zero value to learn whether the default is one
		return ""
	}
	return *v.p
}

// Type is what help calls the value.
func (v *checkedValue) Type() string { return "string" }

// What is allowed for arguments that a minus sign turns into flags.
const (
	factorRule  = "must be a factor above 0 and at most 1,000,000, such as 4x"
	rampRule    = "must be a duration from 5s to 7d, such as 30m"
	idRule      = "must be the ID of a task, a whole number above 0"
	untilRule   = "must be a time of day such as 09:00, a duration from now such as 2h or 2d, or a time such as 2026-12-11T14:02:00Z"
	formulaRule = "begins with a minus sign: write -- before a FORMULA that does"
)

// argumentRule returns what is allowed for the arguments of a command.
func argumentRule(cmd *cobra.Command) string {
	switch cmd.CommandPath() {
	case "falldue policy slow":
		return factorRule
	case "falldue policy ramp":
		return rampRule
	case "falldue policy hold":
		return untilRule
	}
	switch {
	case strings.Contains(cmd.Use, "FORMULA"), strings.Contains(cmd.Use, "OVERRIDE"):
		return formulaRule
	case strings.Contains(cmd.Use, " ID"), strings.Contains(cmd.Use, "[ID"):
		return idRule
	}
	return ""
}

// flagError names the flag, its value and what is allowed.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		text := "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			text = "-" + short
			if rule := argumentRule(cmd); rule != "" && strings.ContainsAny(short[:1], "0123456789.(n") {
				return fmt.Errorf("%q: %s", text, rule)
			}
		}
		return fmt.Errorf("unknown flag %s; \"%s --help\" lists the flags", text, cmd.CommandPath())
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	must := strings.TrimPrefix(bad.Unwrap().Error(), "backoff: ")
	switch kind := bad.GetFlag().Value.Type(); {
	case kind == "stringToString":
		must = "must be NAME=VALUE, such as by=ann"
	case !strings.HasPrefix(must, "strconv."):
	case kind == "bool":
		must = "must be true or false"
	default:
		must = "must be a whole number, 0 or more, such as 7"
	}
	return fmt.Errorf("--%s %.100q: %s", bad.GetFlag().Name, bad.GetValue(), must)
}
