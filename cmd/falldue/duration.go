package main

import (
	"fmt"
	"strings"
	"time"
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
