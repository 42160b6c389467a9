// Package words writes durations, moments and numbers as people read them, in the texts of
// package ops and of the command.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span formats a duration with about three digits.
func Span(d time.Duration) string {
	step := time.Minute
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1fd", d.Hours()/24)
	case d < 10*time.Millisecond:
		step = 10 * time.Microsecond
	case d < time.Second:
		step = time.Millisecond
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

// Moment formats a time of the database's clock, which is UTC.
func Moment(t time.Time) string { return t.Format(time.DateTime) + " UTC" }

// At formats a time, and how long ago it is or in how long it comes.
func At(t, now time.Time) string {
	text := Moment(t)
	switch d := now.Sub(t); {
	case d > 0:
		return text + ", " + Span(d) + " ago"
	case d < 0:
		return text + ", in " + Span(-d)
	}
	return text + ", now"
}

// In says in how long a time comes, and when that is.
func In(t, now time.Time) string {
	return fmt.Sprintf("in %s, at %s", Span(max(t.Sub(now), 0)), Moment(t))
}

// Here formats a time as people in a place have it, and in UTC.
func Here(t time.Time, here *time.Location) string {
	local, utc := t.In(here), t.UTC()
	if _, offset := local.Zone(); offset == 0 {
		return Moment(utc)
	}
	form := time.TimeOnly
	if local.YearDay() != utc.YearDay() {
		form = time.DateTime
	}
	return local.Format(time.DateTime+" MST") + " (" + utc.Format(form) + " UTC)"
}

// Number formats a number with its thousands apart.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Count formats a number of things, such as "1 task", "2 policies" or "3 days".
func Count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
		if i := len(thing) - len("ys"); i > 0 && thing[i] == 'y' && !strings.ContainsRune("aeou", rune(thing[i-1])) {
			thing = thing[:i] + "ies"
		}
	}
	return Number(n) + " " + thing
}

// shownNames is how many names of workers or tasks a text has.
const shownNames = 5

// Names lists the first of many names, such as "a, b, c, d, e and 2 more".
func Names[T any](list []T) string {
	var text string
	for i, name := range list[:min(len(list), shownNames)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(name)
	}
	if more := len(list) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
