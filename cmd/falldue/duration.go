package main

import (
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
