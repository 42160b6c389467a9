package periodic

import (
	"slices"
	"testing"
	"time"
)

// TestLastTicks compares the last ticks of an outage with all of them.
func TestLastTicks(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.October, 20, 8, 0, 30, 0, time.UTC)
	for _, text := range []string{"* * * * *", "@every 90m", "30 2 * * *", "*/7 3 1 1,11 *", "@monthly", "0 0 29 2 *"} {
		spec, err := Parse(text, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		first := spec.Next(start, start)
		if added := first.Add(-10 * time.Second); added.After(start) {
			first = added // by a trigger
		}
		for _, outage := range []time.Duration{0, time.Second, time.Hour, 25 * time.Hour, 100 * 24 * time.Hour} {
			now := first.Add(outage)
			all := []time.Time{first}
			for tick := spec.Next(start, first); !tick.After(now); tick = spec.Next(start, tick) {
				all = append(all, tick)
			}
			for _, most := range []int{1, 2, 10, 1000} {
				want := all[max(len(all)-most, 0):]
				if got := spec.last(start, first, now, most); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%q from %v for %v: the last %d are %v, want %v", text, first, outage, most, got, want)
				}
			}
		}
	}
	everySecond, _ := Parse("@every 1s", "")
	yearOne := time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	if next := everySecond.Next(yearOne, start.Add(time.Millisecond)); !next.Equal(start.Add(time.Second)) {
		t.Errorf("an interval that counts from the year 1 ticks at %v after %v", next, start)
	}
	for i := range 1000 {
		from, after := start.Add(time.Duration(i*617)), start.Add(time.Duration(i*941_003_007))
		if next := everySecond.Next(from, after); !next.After(after) || next.Add(-time.Second).After(after) || next.Sub(from)%time.Second != 0 {
			t.Errorf("each second from %v: %v after %v", from, next, after)
		}
	}
	for _, text := range []string{"@every 1s", "@every 876000h", "0 0 29 2 *"} {
		spec, err := Parse(text, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.last(yearOne, yearOne, start, 3); len(got) != 3 || !got[0].Before(got[1]) || !got[1].Before(got[2]) || got[2].After(start) {
			t.Errorf("%q since the year 1: the last 3 are %v", text, got)
		}
	}
	if got := everySecond.last(start, start.Add(time.Second), start.AddDate(100, 0, 0), 3); len(got) != 3 {
		t.Errorf("in a hundred years of seconds: the last 3 are %v", got)
	}
}
