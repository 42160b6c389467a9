package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/ops"
)

// TestUntil: a time of day is of this machine's zone, spans take days, and what is over is refused.
func TestUntil(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	database := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	here := database.In(berlin).Add(3 * time.Second) // its clock is ahead
	for text, want := range map[string]string{
		"2h":                        "2026-12-11T16:02:00Z",
		"2d":                        "2026-12-13T14:02:00Z",
		"1.5d":                      "2026-12-13T02:02:00Z",
		"1d12h":                     "2026-12-13T02:02:00Z",
		"16:00":                     "2026-12-11T15:00:00Z",
		"09:00":                     "2026-12-12T08:00:00Z",
		"2026-12-11T15:02:01+01:00": "2026-12-11T14:02:01Z",
	} {
		got, err := ops.ParseUntil(text, database, here)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %v (error %v), want %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"2026-12-11T14:02:00Z": `"2026-12-11T14:02:00Z" is in the past: must be after 2026-12-11T14:02:00Z`,
		"2020-01-01T00:00:00Z": "is in the past",
		"-1h":                  "is not a time of day such as 09:00, a duration from now such as 2h or 2d",
		"0s":                   "is not a time of day", "d": "is not a time of day", "1d-5h": "is not a time of day", "9999999999d": "is not a time of day",
	} {
		if got, err := ops.ParseUntil(text, database, here); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is %v, error %v, want %q", text, got, err, says)
		}
	}
}

// TestUntilOnNightsOfSummerTime: a time of day that clocks show twice is the next of both, and one
// that they leave out is an hour later by the new time.
func TestUntilOnNightsOfSummerTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, here, text, want string }{
		{"Europe/Berlin", "2026-10-25T00:45:00Z", "02:50", "2026-10-25T00:50:00Z"},
		{"Europe/Berlin", "2026-10-25T01:45:00Z", "02:50", "2026-10-25T01:50:00Z"},
		{"Europe/Berlin", "2026-10-25T00:45:00Z", "02:45", "2026-10-25T01:45:00Z"},
		{"Europe/Berlin", "2026-10-25T01:45:00Z", "02:45", "2026-10-26T01:45:00Z"},
		{"Europe/Berlin", "2026-10-24T22:30:00Z", "09:00", "2026-10-25T08:00:00Z"},
		{"Europe/Berlin", "2026-03-29T00:30:00Z", "02:30", "2026-03-29T01:30:00Z"},
		{"Europe/Berlin", "2026-03-28T22:30:00Z", "09:00", "2026-03-29T07:00:00Z"},
		{"Europe/Berlin", "2026-03-28T09:30:00Z", "09:00", "2026-03-29T07:00:00Z"},
		{"America/St_Johns", "2026-11-01T04:15:00Z", "01:50", "2026-11-01T04:20:00Z"},
		{"America/St_Johns", "2026-11-01T05:15:00Z", "01:50", "2026-11-01T05:20:00Z"},
		{"America/St_Johns", "2026-03-08T05:00:00Z", "02:30", "2026-03-08T06:00:00Z"},
		{"Pacific/Kiritimati", "2026-12-31T10:30:00Z", "00:15", "2027-01-01T10:15:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		here, err := time.Parse(time.RFC3339, c.here)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ops.ParseUntil(c.text, here, here.In(zone)); err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%s at %s in %s is %v (error %v), want %s", c.text, c.here, c.zone, got.UTC(), err, c.want)
		}
	}
}

// TestDurationsWithDays: days come first, and what is no duration, or is too long, is refused.
func TestDurationsWithDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "30d": 720 * time.Hour, "1d30m": 24*time.Hour + 30*time.Minute, "0.5d": 12 * time.Hour, "-5m": -5 * time.Minute,
	} {
		if d, err := ops.ParseDuration(text); err != nil || d != want {
			t.Errorf("%s is %v, error %v", text, d, err)
		}
	}
	for text, says := range map[string]string{
		"a month": `"a month" is not a duration such as 90s, 48h, 2d or 1d12h`, "": "is not a duration", "1d-5h": "is not a duration", "1d25h": "is not a duration",
		"106751d": `"106751d" is too long: must be at most 106750 days`,
	} {
		if d, err := ops.ParseDuration(text); err == nil || !strings.Contains(err.Error(), says) || d != 0 {
			t.Errorf("%s is %v, error %v, want %q", text, d, err, says)
		}
	}
}
