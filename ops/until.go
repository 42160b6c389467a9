package ops

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

var withDays = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)d(.*)$`)

// ParseDuration parses a duration like [time.ParseDuration], but also accepts days at the beginning, as in 2d or 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a duration such as 90s, 48h, 2d or 1d12h", text)
	m := withDays.FindStringSubmatch(text)
	if m == nil {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, wrong
		}
		return d, nil
	}
	const most = math.MaxInt64/(24*time.Hour) - 1
	days, err := strconv.ParseFloat(m[1], 64)
	if err != nil || days > float64(most) {
		return 0, fmt.Errorf("%q is too long: must be at most %d days", text, most)
	}
	d := time.Duration(days * float64(24*time.Hour))
	if m[2] == "" {
		return d, nil
	}
	rest, err := time.ParseDuration(m[2])
	if err != nil || rest < 0 || rest > 24*time.Hour {
		return 0, wrong
	}
	return d + rest, nil
}

// ParseUntil parses the end of a pause or of an override in one of three forms: a duration from now, such as 2h or 2d,
// by the database's clock (see [Ops.Now]); a time of day such as 09:00, which means its next occurrence in the time
// zone of here (here is the person's current time); or a time such as 2026-12-11T14:02:00Z, which must be after the
// database's current time.
func ParseUntil(text string, database, here time.Time) (time.Time, error) {
	if d, err := ParseDuration(text); err == nil && d > 0 {
		return early(text, database.Add(d))
	}
	if clock, err := time.Parse("15:04", text); err == nil {
		return nextClock(clock, here), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if !at.After(database) {
			return at, fmt.Errorf("%q is in the past: must be after %s", text, database.UTC().Format(time.RFC3339))
		}
		return early(text, at)
	}
	return time.Time{}, fmt.Errorf("%q is not a time of day such as 09:00, a duration from now such as 2h or 2d, or a time such as 2026-12-11T14:02:00Z", text)
}

// early returns a time, or an error if it is too late to be stored.
func early(text string, at time.Time) (time.Time, error) {
	const last = 9100
	if at.UTC().Year() >= last {
		return at, fmt.Errorf("%q: must be before the year %d", text, last)
	}
	return at, nil
}

// nextClock returns the next time after here at which clocks there show the hour and the minute of
// clock. When summer time ends they may show it twice. When it begins they may leave it out: then
// they show the time that is as long after midnight as on other days.
func nextClock(clock, here time.Time) time.Time {
	const half = 12 * time.Hour
	for day := here.Day(); ; day++ {
		at := func(zone *time.Location) time.Time {
			return time.Date(here.Year(), here.Month(), day, clock.Hour(), clock.Minute(), 0, 0, zone)
		}
		var times []time.Time
		for _, d := range []time.Duration{-half, half} { // before and after a change of the zone's clocks
			_, offset := at(here.Location()).Add(d).Zone()
			times = append(times, at(time.FixedZone("", offset)).In(here.Location()))
		}
		shown := slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool {
			return t.Hour() != clock.Hour() || t.Minute() != clock.Minute()
		})
		if len(shown) == 0 {
			shown = times[:1]
		}
		if i := slices.IndexFunc(shown, here.Before); i >= 0 {
			return shown[i]
		}
	}
}
