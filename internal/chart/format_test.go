package chart_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/chart"
)

func TestNumbersAreWrittenAsPeopleDo(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for want, d := range map[string]time.Duration{
		"0": 0, "7 µs": 7 * time.Microsecond, "250 ms": 250 * time.Millisecond, "1.5 s": 1500 * time.Millisecond, "16 s": 16 * time.Second,
		"1.5 min": 90 * time.Second, "3 min": 3 * time.Minute, "1 h": time.Hour, "24 h": day, "47 h": 47 * time.Hour, "2 d": 2 * day, "4.5 d": 108*time.Hour + 30*time.Minute,
		"25 d": 25 * day, "100 yr": 36500 * day,
	} {
		if got := chart.Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for want, v := range map[string]float64{
		"0": 0, "0.85": 0.853, "7.3": 7.25, "53": 53.4, "999": 999, "1k": 1000, "1.2k": 1234, "94k": 94100, "238k": 237600, "1.5M": 1_500_000, "2G": 2e9, "-1.2k": -1234,
	} {
		if got := chart.Number(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
