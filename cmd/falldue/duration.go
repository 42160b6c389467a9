package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/falldue/falldue/ops"
)

// band formats the shortest and the longest of durations, or one if both are the same.
func band(shortest, longest time.Duration) string {
	if shortest == longest {
		return approximate(shortest)
	}
	return approximate(shortest) + " – " + approximate(longest)
}

// approximate formats a wait with about three digits.
func approximate(d time.Duration) string {
	step := time.Minute
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1fd", d.Hours()/24)
	case d < time.Minute:
		step = 10 * time.Millisecond
	case d < time.Hour:
		step = time.Second
	}
	text := d.Round(step).String()
	for _, zero := range []string{"m0s", "h0m"} { // 1h30m0s, 1h0m
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
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
