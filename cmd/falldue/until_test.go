package main

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/words"
)

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
		if err := (&spanValue{&d, 0, longestSpan}).Set(text); err != nil || d != want {
			t.Errorf("%s is %v, error %v", text, d, err)
		}
	}
	if _, err := execute(t, "delete", "--older-than", "a month", "--dsn", "x"); exitStatus(err) != exitUsage || !strings.Contains(err.Error(), `--older-than "a month": must be a duration such as 90s, 48h, 2d or 1d12h`) {
		t.Errorf("error %v", err)
	}
}
