package main

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/words"
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
		got, err := parseUntil(text, database, here)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %v (error %v), want %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"2026-12-11T14:02:00Z": `"2026-12-11T14:02:00Z" is over; allowed are times after 2026-12-11T14:02:00Z`,
		"2020-01-01T00:00:00Z": "is over",
		"-1h":                  "is not a time of day such as 09:00, a time from now on such as 2h or 2d",
		"0s":                   "is not a time of day", "d": "is not a time of day", "1d-5h": "is not a time of day", "9999999999d": "is not a time of day",
	} {
		if got, err := parseUntil(text, database, here); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is %v, error %v, want %q", text, got, err, says)
		}
	}
}

// TestTimesInTwoZones: local and UTC, or UTC alone where both are the same.
func TestTimesInTwoZones(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 11, 23, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		at     time.Time
		offset int
		want   string
	}{
		{at, 0, "2026-12-11 23:30:00 UTC"},
		{at, 3600, "2026-12-12 00:30:00 CET (2026-12-11 23:30:00 UTC)"},
		{at.Add(-time.Hour), 3600, "2026-12-11 23:30:00 CET (22:30:00 UTC)"},
	} {
		if got := words.Here(c.at, time.FixedZone("CET", c.offset)); got != c.want {
			t.Errorf("%v is %q, want %q", c.at, got, c.want)
		}
	}
}

// TestAgesInDays: the flags that select tasks by their ages take days.
func TestAgesInDays(t *testing.T) {
	t.Parallel()
	var d time.Duration
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "48h": 48 * time.Hour, "1d30m": 24*time.Hour + 30*time.Minute} {
		if err := (*spanValue)(&d).Set(text); err != nil || d != want {
			t.Errorf("%s is %v, error %v", text, d, err)
		}
	}
	if _, err := execute(t, "delete", "--older-than", "a month", "--dsn", "x"); exitStatus(err) != exitUsage || !strings.Contains(err.Error(), `"a month" is not a duration such as 90s, 48h, 2d or 1d12h`) {
		t.Errorf("error %v", err)
	}
}
