package periodic

import (
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/falldue/falldue"
)

// maxYears is how far ahead a tick is looked for. The 29th of February is a Sunday after 40
// years at the latest.
const maxYears = 41

// The shortest and the longest interval.
const (
	minEvery = time.Second
	maxEvery = 36500 * 24 * time.Hour
)

// Spec defines when a schedule ticks, that is, enqueues its task: at the times of a cron
// expression in a time zone, or at an interval. [Parse] returns one.
type Spec struct {
	cron  *expression // nil for an interval
	zone  *time.Location
	every time.Duration
}

// Parse returns the Spec of a text: a cron expression of five fields, one of @hourly, @daily, @weekly, @monthly and
// @yearly, or @every and a duration of 1s to 876000h, such as "@every 15m". zone is the name of a time zone of the IANA
// database, such as "Europe/Berlin", or "" for UTC.
//
// The fields are the minute, hour, day of the month, month, and day of the week, where 0, 7 and SUN are Sunday. They
// have the same meaning as in Vixie cron and cronie. If both the day of the month and the
// day of the week are restricted, the schedule ticks on days that match either field. A field
// that begins with a star, such as "*/2", does not count as restricted. With such a field, the
// schedule ticks only on days that match both.
//
// The error wraps [falldue.ErrInvalid] for any other text or zone, and for an expression
// without a tick, such as the 30th of February.
func Parse(spec, zone string) (Spec, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || ofHost(zone) {
		return Spec{}, invalid("zone %.100q: must be a name of the IANA database, such as Europe/Berlin", zone)
	}
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || every < minEvery || every > maxEvery || every%time.Microsecond != 0 {
			return Spec{}, invalid("spec %.100q: must be @every and a duration of 1s to 876000h in whole microseconds, such as \"@every 15m\"", spec)
		}
		return Spec{every: every, zone: location}, nil
	}
	if strings.Contains(spec, "=") {
		return Spec{}, invalid("spec %.100q: must not name a time zone, which Zone sets", spec)
	}
	parsed, err := parseCron(spec)
	if err != nil {
		return Spec{}, invalid("spec %.100q: %v", spec, err)
	}
	s := Spec{cron: &parsed, zone: location}
	if s.Next(time.Unix(0, 0), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Spec{}, invalid("spec %.100q has no tick: must name a day that exists", spec)
	}
	return s, nil
}

// ofHost reports whether a zone that the host knows is none of the IANA database, so that
// another host has another one by that name, or none: its own time, and its copies of the
// database with and without leap seconds. Some file systems ignore case.
func ofHost(zone string) bool {
	name := strings.ToLower(zone)
	first, _, inFolder := strings.Cut(name, "/")
	return name == "local" || name == "localtime" || name == "posixrules" || inFolder && (first == "right" || first == "posix") ||
		zone != "" && path.Clean(zone) != zone // "./localtime"
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", falldue.ErrInvalid, fmt.Sprintf(format, args...))
}

// Next returns the first tick after a time. Intervals count from start.
//
// If daylight saving time skips the time of a tick, the schedule ticks once, at the end of the
// gap. If the time occurs twice, the schedule ticks only the first time. An expression for every
// hour of the day follows the hours as they pass: it ticks again in a repeated hour, and doesn't
// tick in a skipped one.
func (s Spec) Next(start, after time.Time) time.Time {
	switch {
	case s.cron == nil:
		return s.nextInterval(start, after)
	case s.everyHour():
		return s.nextPassing(after.In(s.zone))
	}
	return s.nextFixed(after.In(s.zone))
}

// nextInterval returns the first tick of an interval after a time. It counts in microseconds,
// since a time.Duration ends after 292 years.
func (s Spec) nextInterval(start, after time.Time) time.Time {
	if after.Before(start) {
		return start.Add(s.every)
	}
	every := s.every.Microseconds()
	passed := (after.UnixMicro() - start.UnixMicro()) / every * every // but for a fraction of a microsecond
	tick := time.UnixMicro(start.UnixMicro() + passed).Add(time.Duration(start.Nanosecond() % 1000)).In(start.Location())
	if !tick.After(after) {
		tick = tick.Add(s.every)
	}
	return tick
}

// last returns the last ticks from first, which is one, to now: most of them, or all if those
// are fewer.
func (s Spec) last(start, first, now time.Time, most int) (ticks []time.Time) {
	const longest = math.MaxInt64 / 2
	for span := time.Minute; ; span *= 2 { // since an outage may have had millions
		from, tick := now.Add(-span), first
		whole := span > longest || !from.After(first)
		if !whole {
			tick = s.Next(start, from)
		}
		for ticks = nil; !tick.After(now); {
			ticks = append(ticks, tick)
			next := s.Next(start, tick)
			if !next.After(tick) { // there is none
				break
			}
			tick = next
		}
		if len(ticks) >= most || whole {
			return ticks[max(len(ticks)-most, 0):]
		}
	}
}

const allHours = 1<<24 - 1

func (s Spec) everyHour() bool { return s.cron.hour == allHours }

// nextPassing returns the first minute after a time at which the clock shows a time of the
// expression.
func (s Spec) nextPassing(after time.Time) time.Time {
	t := after.Add(time.Minute - time.Duration(after.Second())*time.Second - time.Duration(after.Nanosecond()))
	for end := after.AddDate(maxYears, 0, 0); t.Before(end); {
		switch {
		case !s.day(t):
			y, m, d := t.Date()
			t = later(s.moment(time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)), t.Add(time.Minute))
		case !has(s.cron.minute, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

func later(t, other time.Time) time.Time {
	if t.Before(other) {
		return other
	}
	return t
}

// nextFixed goes through the times of the expression, as a clock without summer time shows
// them, until one of them is after a time.
func (s Spec) nextFixed(after time.Time) time.Time {
	y, m, d := after.Date()
	wall := time.Date(y, m, d, after.Hour(), after.Minute(), 0, 0, time.UTC)
	for end := wall.AddDate(maxYears, 0, 0); wall.Before(end); {
		switch {
		case !s.day(wall):
			wall = wall.Truncate(24*time.Hour).AddDate(0, 0, 1)
		case !has(s.cron.hour, wall.Hour()):
			wall = wall.Truncate(time.Hour).Add(time.Hour)
		default:
			if has(s.cron.minute, wall.Minute()) {
				if t := s.moment(wall); t.After(after) {
					return t
				}
			}
			wall = wall.Add(time.Minute)
		}
	}
	return time.Time{}
}

// moment returns when the clock of the zone first shows what wall shows in UTC, or the end of
// the gap if it never does.
func (s Spec) moment(wall time.Time) time.Time {
	y, m, d := wall.Date()
	t := time.Date(y, m, d, wall.Hour(), wall.Minute(), 0, 0, s.zone)
	start, end := t.ZoneBounds()
	switch shown := asUTC(t); {
	case shown.After(wall): // computed by the offset before the gap
		return start
	case shown.Before(wall): // by the offset after it
		return end
	case !start.IsZero(): // an hour may be repeated, and this the second one
		_, offset := start.Add(-1).Zone()
		if first := wall.Add(-time.Duration(offset) * time.Second).In(s.zone); first.Before(start) && asUTC(first).Equal(wall) {
			return first
		}
	}
	return t
}

// asUTC returns what the clock shows at t as a time in UTC.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// day reports whether the day of t is one of the expression.
func (s Spec) day(t time.Time) bool {
	month, week := has(s.cron.dayOfMonth, t.Day()), has(s.cron.dayOfWeek, int(t.Weekday()))
	if !has(s.cron.month, int(t.Month())) {
		return false
	}
	if s.cron.anyDay {
		return month && week
	}
	return month || week
}

func has(bits uint64, n int) bool { return bits&(1<<n) != 0 }
