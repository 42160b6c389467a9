package words_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/words"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	cet := time.FixedZone("CET", 3600)
	for _, c := range []struct{ got, want string }{
		{words.Span(0), "0s"}, {words.Span(1234567 * time.Microsecond), "1.23s"}, {words.Span(90 * time.Second), "1m30s"},
		{words.Span(time.Minute), "1m"}, {words.Span(time.Hour), "1h"}, {words.Span(90*time.Minute + 20*time.Second), "1h30m"}, {words.Span(60 * time.Hour), "2.5d"},
		{words.At(now.Add(-time.Hour), now), "2026-12-11 13:02:00 UTC, 1h ago"}, {words.At(now.Add(time.Hour), now), "2026-12-11 15:02:00 UTC, in 1h"},
		{words.At(now, now), "2026-12-11 14:02:00 UTC, now"}, {words.In(now.Add(time.Hour), now), "in 1h, at 2026-12-11 15:02:00 UTC"},
		{words.In(now.Add(-time.Hour), now), "in 0s, at 2026-12-11 13:02:00 UTC"},
		{words.Here(now, time.UTC), "2026-12-11 14:02:00 UTC"}, {words.Here(now, cet), "2026-12-11 15:02:00 CET (14:02:00 UTC)"},
		{words.Here(now.Add(9*time.Hour), cet), "2026-12-12 00:02:00 CET (2026-12-11 23:02:00 UTC)"},
		{words.Number(0), "0"}, {words.Number(-123), "-123"}, {words.Number(-1234567), "-1,234,567"}, {words.Count(1, "task"), "1 task"}, {words.Count(1234, "task"), "1,234 tasks"}, {words.Count(2, "policy"), "2 policies"}, {words.Count(36_500, "day"), "36,500 days"},
		{words.Names([]int64{1, 2}), "1, 2"}, {words.Names([]string{"1", "2", "3", "4", "5", "6", "7"}), "1, 2, 3, 4, 5 and 2 more"}, {words.Names[int](nil), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
