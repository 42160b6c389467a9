package main

import (
	"fmt"
	"strconv"
	"time"

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

// spanValue is the value of a flag that takes days, too.
type spanValue time.Duration

func spanVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*spanValue)(p), name, usage)
}

// Set parses the value.
func (v *spanValue) Set(text string) error {
	d, err := ops.ParseDuration(text)
	*v = spanValue(d)
	return err
}

func (v *spanValue) String() string { return time.Duration(*v).String() }

// Type is what help calls the value.
func (v *spanValue) Type() string { return "duration" }

// countValue is the value of a flag that takes 1 to most.
type countValue struct {
	n    *int
	most int
}

func countVar(flags *pflag.FlagSet, p *int, name string, value, most int, usage string) {
	*p = value
	flags.Var(&countValue{p, most}, name, usage)
}

// Set parses the value.
func (v *countValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > v.most {
		return fmt.Errorf("must be a whole number from 1 to %s", grouped(int64(v.most)))
	}
	*v.n = n
	return nil
}

func (v *countValue) String() string {
	if v.n == nil { // pflag makes a zero value to learn whether the default is one
		return "0"
	}
	return strconv.Itoa(*v.n)
}

// Type is what help calls the value.
func (v *countValue) Type() string { return "int" }
