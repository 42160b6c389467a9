package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
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

var withDays = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)d(.*)$`)

// parseSpan parses a duration, which may begin with days: 90s, 2d, 1d12h.
func parseSpan(text string) (time.Duration, error) {
	m := withDays.FindStringSubmatch(text)
	if m == nil {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseFloat(m[1], 64)
	const most = float64(math.MaxInt64 / (24 * time.Hour))
	if err != nil || days > most-1 {
		return 0, fmt.Errorf("%q is too long", text)
	}
	d := time.Duration(days * float64(24*time.Hour))
	if m[2] == "" {
		return d, nil
	}
	rest, err := time.ParseDuration(m[2])
	if err != nil || rest < 0 || rest > 24*time.Hour {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 48h, 2d or 1d12h", text)
	}
	return d + rest, nil
}

// spanValue is the value of a flag that takes days, too.
type spanValue time.Duration

func spanVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*spanValue)(p), name, usage)
}

// Set parses the value.
func (v *spanValue) Set(text string) error {
	d, err := parseSpan(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 48h, 2d or 1d12h", text)
	}
	*v = spanValue(d)
	return nil
}

func (v *spanValue) String() string { return time.Duration(*v).String() }

// Type is what help calls the value.
func (v *spanValue) Type() string { return "duration" }
