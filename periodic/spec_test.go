package periodic_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

// TestTicks pins when expressions tick, above all in the nights in which clocks change.
func TestTicks(t *testing.T) {
	t.Parallel()
	const (
		york   = "America/New_York"
		howe   = "Australia/Lord_Howe"
		berlin = "Europe/Berlin"
	)
	for _, c := range []struct{ what, spec, zone, after, want string }{
		{"New York skips 2:00 to 3:00", "30 2 * * *", york, "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"several times in the gap tick once", "*/10 2 * * *", york, "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:00:00-04:00"},
		{"the gap's end is a time of its own", "0,30 2,3 * * *", york, "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2026-03-08T03:30:00-04:00 2026-03-09T02:00:00-04:00"},
		{"in the last moment before the gap", "30 2 * * *", york, "2026-03-08T01:59:59-05:00", "2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"at the gap's end", "30 2 * * *", york, "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		{"hours pass over the gap", "30 * * * *", york, "2026-03-08T00:45:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-08T03:30:00-04:00 2026-03-08T04:30:00-04:00"},
		{"minutes pass over the gap", "*/30 * * * *", york, "2026-03-08T01:15:00-05:00", "2026-03-08T01:30:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T03:30:00-04:00"},
		{"New York repeats 1:00 to 2:00", "30 1 * * *", york, "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"between the two", "30 1 * * *", york, "2026-11-01T01:45:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"within the second one", "30 1 * * *", york, "2026-11-01T01:15:00-05:00", "2026-11-02T01:30:00-05:00"},
		{"two times of a repeated hour", "0,30 1 * * *", york, "2026-11-01T00:00:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:30:00-04:00 2026-11-02T01:00:00-05:00"},
		{"every hour, the repeated one too", "30 * * * *", york, "2026-11-01T00:45:00-04:00", "2026-11-01T01:30:00-04:00 2026-11-01T01:30:00-05:00 2026-11-01T02:30:00-05:00"},
		{"all hours of a range are every hour", "0 0-23 * * *", york, "2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00"},
		{"some hours are fixed times", "0 1,2 * * *", york, "2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T02:00:00-05:00 2026-11-02T01:00:00-05:00"},
		{"every second hour is fixed times", "0 */2 * * *", berlin, "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T04:00:00+01:00"},
		{"Lord Howe skips 2:00 to 2:30", "15 2 * * *", howe, "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"after the half hour", "45 2 * * *", howe, "2026-10-03T12:00:00+10:30", "2026-10-04T02:45:00+11:00 2026-10-05T02:45:00+11:00"},
		{"hours pass over the half hour", "15 * * * *", howe, "2026-10-04T01:00:00+10:30", "2026-10-04T01:15:00+10:30 2026-10-04T03:15:00+11:00"},
		{"Lord Howe repeats 1:30 to 2:00", "45 1 * * *", howe, "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"every hour, the repeated half too", "45 * * * *", howe, "2026-04-05T01:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-05T01:45:00+10:30 2026-04-05T02:45:00+10:30"},
		{"Cairo skips midnight", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00", "2026-04-24T01:00:00+03:00 2026-04-25T00:00:00+03:00"},
		{"every hour of a day without midnight", "0 * 24 4 *", "Africa/Cairo", "2026-04-23T12:00:00+02:00", "2026-04-24T01:00:00+03:00 2026-04-24T02:00:00+03:00"},
		{"Havana repeats midnight", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00-04:00", "2026-11-01T00:00:00-04:00 2026-11-02T00:00:00-05:00"},
		{"every hour of a day with two midnights", "0 * 1 11 *", "America/Havana", "2026-10-31T12:00:00-04:00", "2026-11-01T00:00:00-04:00 2026-11-01T00:00:00-05:00 2026-11-01T01:00:00-05:00"},
		{"Samoa skipped a day", "0 12 30 * *", "Pacific/Apia", "2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-01-30T12:00:00+14:00"},
		{"a tick itself is over", "0 12 * * *", "UTC", "2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z"},
		{"a second before it", "0 12 * * *", "UTC", "2026-06-01T11:59:59Z", "2026-06-01T12:00:00Z"},
		{"working days", "0 9 * * MON-FRI", "UTC", "2026-06-05T09:00:00Z", "2026-06-08T09:00:00Z 2026-06-09T09:00:00Z"},
		{"a day of the month or of the week", "0 0 13 * FRI", "UTC", "2026-06-01T00:00:00Z", "2026-06-05T00:00:00Z 2026-06-12T00:00:00Z 2026-06-13T00:00:00Z"},
		{"a step in the day of the month is a star", "0 0 */10 * MON", "UTC", "2026-06-01T00:00:00Z", "2026-08-31T00:00:00Z 2026-09-21T00:00:00Z 2026-12-21T00:00:00Z"},
		{"a step in the day of the week is a star", "0 0 13 * */2", "UTC", "2026-06-01T00:00:00Z", "2026-06-13T00:00:00Z 2026-08-13T00:00:00Z 2026-09-13T00:00:00Z"},
		{"steps in both", "0 0 */2 * */3", "UTC", "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z 2026-06-07T00:00:00Z 2026-06-13T00:00:00Z"},
		{"a list that begins with a star", "0 0 *,15 * FRI", "UTC", "2026-06-01T00:00:00Z", "2026-06-05T00:00:00Z 2026-06-12T00:00:00Z"},
		{"a list that does not", "0 0 15,* * FRI", "UTC", "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z 2026-06-03T00:00:00Z"},
		{"a step of a range is no star", "0 0 1,15 * 1-5/2", "UTC", "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z 2026-06-05T00:00:00Z 2026-06-08T00:00:00Z"},
		{"the seventh day is Sunday", "0 0 * * 7", "UTC", "2026-06-01T00:00:00Z", "2026-06-07T00:00:00Z 2026-06-14T00:00:00Z"},
		{"a range up to Sunday", "0 0 * * fri-7", "UTC", "2026-06-01T00:00:00Z", "2026-06-05T00:00:00Z 2026-06-06T00:00:00Z 2026-06-07T00:00:00Z 2026-06-12T00:00:00Z"},
		{"steps to Sunday", "0 0 * * 1-7/3", "UTC", "2026-06-01T00:00:00Z", "2026-06-04T00:00:00Z 2026-06-07T00:00:00Z 2026-06-08T00:00:00Z"},
		{"a leap day that is a Sunday", "0 0 29 2 */7", "UTC", "2032-03-01T00:00:00Z", "2060-02-29T00:00:00Z 2088-02-29T00:00:00Z 2128-02-29T00:00:00Z"},
		{"a leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"a month", "@monthly", "UTC", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z 2026-08-01T00:00:00Z"},
		{"an interval counts from its start", "@every 25h", york, "2026-01-01T00:00:00Z", "2026-01-01T15:30:00Z 2026-01-02T16:30:00Z"},
		{"an interval that has not started", "@every 10m", "UTC", "2025-12-31T14:20:00Z", "2025-12-31T14:40:00Z"},
	} {
		spec, err := periodic.Parse(c.spec, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		zone, _ := time.LoadLocation(c.zone)
		at := moment(t, c.after)
		for _, text := range strings.Fields(c.want) {
			at = spec.Next(moment(t, "2025-12-31T14:30:00Z"), at)
			if !at.Equal(moment(t, text)) {
				t.Errorf("%s: %q ticks at %s, want %s", c.what, c.spec, at.In(zone).Format(time.RFC3339), text)
				break
			}
		}
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestTicksAscend goes through a year of each zone: no tick comes twice, and each fixed time
// of a day comes once a day.
func TestTicksAscend(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "Europe/Dublin", "Asia/Kolkata", "Pacific/Chatham"} {
		for spec, aDay := range map[string]int{"30 2 * * *": 1, "45 1 * * *": 1, "15 0 * * *": 1, "0 3,15 * * *": 2, "59 23 * * *": 1} {
			s, err := periodic.Parse(spec, zone)
			if err != nil {
				t.Fatal(err)
			}
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			first, end := time.Date(2026, 1, 1, 0, 0, 0, 0, location), time.Date(2027, 1, 1, 0, 0, 0, 0, location)
			days := map[string]int{}
			for at := first.Add(-1); ; {
				next := s.Next(first, at)
				if !next.After(at) {
					t.Fatalf("%s in %s: after %v comes %v", spec, zone, at, next)
				}
				if at = next; !at.Before(end) {
					break
				}
				days[at.In(location).Format(time.DateOnly)]++
			}
			if len(days) != 365 {
				t.Errorf("%s in %s: ticks on %d days", spec, zone, len(days))
			}
			for day, n := range days {
				if n != aDay {
					t.Errorf("%s in %s: %d ticks on %s", spec, zone, n, day)
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, names string }{
		{"", "", `""`},
		{"* * * *", "", "* * * *"},
		{"* * * * * *", "", "must have 5"},
		{"60 * * * *", "", `minute "60": must be between 0 and 59`},
		{"0 0 0 * *", "", `day of the month "0": must be between 1 and 31`},
		{"0 0 * * 8", "", `day of the week "8": must be between 0 and 7`},
		{"0 0 * Foo *", "", `month "Foo"`},
		{"-1 * * * *", "", `minute ""`},
		{"+1 * * * *", "", `minute "+1"`},
		{"1,,2 * * * *", "", `minute ""`},
		{"*-5 * * * *", "", `minute "*"`},
		{"1-2-3 * * * *", "", `minute "2-3"`},
		{"0 0 * * 5-1", "", `day of the week "5-1": the range ends before it begins`},
		{"*/0 * * * *", "", `minute "*/0": the step must be a number above 0`},
		{"*/2/3 * * * *", "", `minute "*/2/3": the step`},
		{"5/10 * * * *", "", `minute "5/10": only a range can have a step, such as 5-59/10`},
		{"0 0 ? * MON", "", `day of the month "?"`},
		{"99999999999999999999 * * * *", "", "9999"},
		{"@Daily", "", "@Daily"},
		{"0 0 30 2 *", "", "no tick"},
		{"0 0 31 4,6 *", "", "no tick"},
		{"TZ=UTC", "", "Zone"},
		{"TZ=UTC 0 0 * * *", "", "Zone"},
		{"@every 10ms", "", "1s to 876000h"},
		{"@every 876001h", "", "1s to 876000h"},
		{"@every 1s5ns", "", "whole microseconds"},
		{"@every", "", "@every 15m"},
		{"@fortnightly", "", "@fortnightly"},
		{"0 0 * * *", "Mars/Olympus", "Mars/Olympus"},
		{"0 0 * * *", "Local", "Local"},
		{"0 0 * * *", "localtime", "localtime"},
		{"0 0 * * *", "LOCALTIME", "LOCALTIME"},
		{"0 0 * * *", "./localtime", "./localtime"},
		{"0 0 * * *", "posixrules", "posixrules"},
		{"0 0 * * *", "right/Europe/Berlin", "right/Europe/Berlin"},
		{"0 0 * * *", "posix/Europe/Berlin", "posix/Europe/Berlin"},
		{"0 0 * * *", "Europe//Berlin", "Europe//Berlin"},
	} {
		if _, err := periodic.Parse(c.spec, c.zone); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("Parse(%q, %q): error %v, want one that names %q", c.spec, c.zone, err, c.names)
		}
	}
}
