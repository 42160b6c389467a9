package main

import (
	"errors"
	"fmt"
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
}

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
		return fmt.Errorf("must be a number of tasks a second above 0 and up to %s, such as 50 or 0.5", grouped(mostRate))
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

// flagError names the flag, its value and what is allowed.
func flagError(_ *cobra.Command, err error) error {
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
		must = "must be a whole number from 0 on, such as 7"
	}
	return fmt.Errorf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), must)
}
