package ops

import (
	"slices"
	"testing"
	"time"
)

// TestSpreadKeepsItsRateWhateverStatementsTake: no batch begins before the one before it
// ends, although the time at which a statement ran is known only within limits.
func TestSpreadKeepsItsRateWhateverStatementsTake(t *testing.T) {
	t.Parallel()
	s := newSpreader(Spread{Rate: 1000}, time.Now())
	var now time.Duration
	s.since = func() time.Duration { return now }
	var due []time.Duration
	for i := range 5 {
		waits, taken := s.plan(100)
		now += time.Duration(i%3) * 250 * time.Millisecond // the statement waits for a lock
		ran := now
		now += time.Millisecond
		taken()
		for _, w := range waits {
			due = append(due, ran+w)
		}
	}
	if !slices.IsSorted(due) {
		t.Error("a batch begins before the one before it ends")
	}
	for i := range due[100:] {
		if gap := due[i+100] - due[i]; gap < 99*time.Millisecond {
			t.Fatalf("100 tasks fall due within %v, at a rate of 1000 a second", gap)
		}
	}
}

// TestSpreadOverATimeIsEven: after any number of tasks no part of the time has many more
// than another.
func TestSpreadOverATimeIsEven(t *testing.T) {
	t.Parallel()
	s := newSpreader(Spread{Over: 100 * time.Second}, time.Now())
	var seconds [101]int
	for range 20 {
		waits, taken := s.plan(500)
		taken()
		for _, w := range waits {
			seconds[w/time.Second]++
		}
	}
	if most := slices.Max(seconds[:]); most > 110 {
		t.Errorf("a second has %d of 10000 tasks over 100 seconds", most)
	}
}

// TestSpreadNeverBeginsInThePast, however low the rate is and however far away the beginning:
// the tasks would all fall due at once.
func TestSpreadNeverBeginsInThePast(t *testing.T) {
	t.Parallel()
	far := time.Now().Add(maxDelay - time.Hour)
	for _, spread := range []Spread{{Rate: 1e-9}, {Rate: 1e-12}, {Rate: 1, From: far}, {Over: maxDelay, From: far}, {From: far}} {
		if err := spread.validate(); err != nil {
			t.Errorf("%+v: %v", spread, err)
		}
		s := newSpreader(spread, time.Now())
		for range 3 {
			waits, taken := s.plan(500)
			taken()
			if spread.Over == 0 && !slices.IsSorted(waits) || slices.Min(waits) < 0 || waits[499] > 2*maxDelay {
				t.Errorf("%+v: the tasks fall due from %v to %v after the statement", spread, waits[0], waits[499])
			}
			if spread.Rate > 0 && spread.Rate < 1 && waits[499] < maxDelay {
				t.Errorf("%+v: 500 tasks fall due within %v", spread, waits[499])
			}
		}
	}
	if err := (Spread{Rate: 1, From: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}).validate(); err == nil {
		t.Error("a beginning in a thousand years is valid, which no Duration reaches")
	}
}
