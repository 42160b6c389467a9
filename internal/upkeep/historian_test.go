package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// historyBook is a table of history that remembers what was written. Its clock is behind.
type historyBook struct {
	mu       sync.Mutex
	sums     []store.Sums
	at       []time.Time // of the sums, by its clock
	asked    int         // for the time
	taken    int         // how often a worker wanted to measure
	others   bool        // another worker measures
	failures []error     // of the next writes
	measures int
	due      time.Duration
	runs     int // handlers that run
	log      strings.Builder
	troubles map[string]int // by role
}

var errAway, errLocked = errors.New("away"), errors.New("locked")

const behind = 17 * time.Second

func (b *historyBook) Now(context.Context) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return time.Now().Add(-behind), nil
}

func (b *historyBook) AddMinutes(_ context.Context, sums []store.Sums, back time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failures) > 0 {
		err := b.failures[0]
		b.failures = b.failures[1:]
		return err
	}
	for _, s := range sums {
		b.sums, b.at = append(b.sums, s), append(b.at, time.Now().Add(-behind-back))
	}
	return nil
}

func (b *historyBook) TakeSample(context.Context, time.Duration) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken++
	return !b.others, nil
}

func (b *historyBook) PutSample(context.Context, store.Sample) error { return nil }

func (b *historyBook) Classify(err error) dialect.Class {
	switch {
	case errors.Is(err, errAway):
		return dialect.Disconnected
	case errors.Is(err, errLocked):
		return dialect.Contention
	}
	return dialect.Other
}

func (b *historyBook) Measure(context.Context) ([]store.Gauge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.measures++
	return []store.Gauge{{Queue: "default", Kind: "k", Tasks: map[string]int64{"open": 4}, OldestDue: b.due.Microseconds()}}, nil
}

func (b *historyBook) Running() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return map[string]int{"default": b.runs}
}

// done returns how many done tasks were written.
func (b *historyBook) done() (n int64) {
	for _, s := range b.sums {
		n += s.Done
	}
	return n
}

// Write adds to the log.
func (b *historyBook) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(text)
}

// trouble counts failures of the historian.
func (b *historyBook) trouble(role, _ string, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles[role]++
}

// withHistorian calls f with a historian that works. f holds the book's lock, except while it waits.
func withHistorian(t *testing.T, f func(b *historyBook, tally *Tally, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		b, tally := &historyBook{troubles: map[string]int{}}, new(Tally)
		log := retry.Sparse(slog.New(slog.NewTextHandler(b, nil)), func(error) dialect.Class { return dialect.Other }, b.trouble)
		h := NewHistorian(tally, b, b, b, log)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); h.Work(ctx) }()
		stop := func() {
			b.mu.Unlock()
			defer b.mu.Lock()
			cancel()
			<-ended
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		defer stop()
		f(b, tally, stop)
	})
}

// ends counts a done task.
func (t *Tally) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of("default", "k").Done++
}

func (b *historyBook) wait(d time.Duration) {
	b.mu.Unlock()
	defer b.mu.Lock()
	time.Sleep(d)
	synctest.Wait()
}

// TestHistoryIsWrittenOnceAMinute: a historian writes the sums of each minute of the database's clock, and nothing for a
// minute without runs.
func TestHistoryIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	withHistorian(t, func(b *historyBook, tally *Tally, stop func()) {
		b.wait(time.Hour)
		if len(b.sums)+b.taken+b.asked+b.measures != 0 {
			t.Fatalf("an idle worker writes %d sums, measures %d times and asks for the time %d times", len(b.sums), b.taken, b.asked)
		}
		tally.ends()
		b.wait(2 * time.Minute) // from here on the worker knows the database's clock
		b.others = true
		b.sums, b.at = nil, nil
		var want []time.Time
		for range 100 {
			tally.ends()
			want = append(want, time.Now().Add(-behind).Truncate(time.Minute))
			b.wait(time.Minute)
		}
		b.wait(time.Minute)
		if len(b.sums) != 100 || b.asked > 3 {
			t.Fatalf("%d sums were written in 100 minutes, and the time was asked for %d times", len(b.sums), b.asked)
		}
		for i, at := range b.at {
			if at = at.Truncate(time.Minute); !at.Equal(want[i]) {
				t.Errorf("a run of %v counts for %v", want[i], at)
			}
		}
		tally.ends()
		stop()
		if n := b.done(); n != 101 {
			t.Errorf("%d runs were written when the worker ended, want 101", n)
		}
	})
}

// TestHistoryCountsNothingTwice: sums are added again after contention, and dropped when it is not known whether
// they were added. A table that cannot be written is logged once.
func TestHistoryCountsNothingTwice(t *testing.T) {
	t.Parallel()
	withHistorian(t, func(b *historyBook, tally *Tally, _ func()) {
		b.others = true
		b.failures = []error{errLocked, errLocked}
		tally.ends()
		b.wait(2 * time.Minute)
		if n := b.done(); n != 1 || b.log.Len() > 0 {
			t.Errorf("after contention %d runs were written, want 1; the log is %s", n, &b.log)
		}
		b.failures = []error{errAway}
		tally.ends()
		b.wait(2 * time.Minute)
		if n := b.done(); n != 1 {
			t.Errorf("%d runs were written, want 1: the second may have been written when the connection was lost", n)
		}
		tally.ends()
		b.wait(2 * time.Minute)
		for i := range 30 { // with idle minutes between
			if i%2 == 0 {
				b.failures = []error{errors.New("permission denied")}
				tally.ends()
			}
			b.wait(time.Minute)
		}
		if n := strings.Count(b.log.String(), "cannot write the history"); n != 2 {
			t.Errorf("the log has %d lines about the history, want 1 for each of the two reasons: %s", n, &b.log)
		}
		if n := b.troubles["history"]; n != 1+15 {
			t.Errorf("%d failures were reported, want 16", n)
		}
	})
}

// TestOneWorkerMeasures: one worker measures while tasks run or are due, and none when all are idle.
func TestOneWorkerMeasures(t *testing.T) {
	t.Parallel()
	withHistorian(t, func(b *historyBook, tally *Tally, _ func()) {
		tally.ends()
		b.wait(2 * time.Hour)
		if b.measures < 10 || b.measures > 12 {
			t.Errorf("after a run a worker measures %d times, want 11: it sleeps then", b.measures)
		}
		measured := 0
		for _, s := range b.sums {
			if s.Waiting.Valid && s.Waiting.V == 4 {
				measured++
			}
		}
		if measured != b.measures {
			t.Errorf("%d measurements were written, want %d", measured, b.measures)
		}
		more := func(what string, least, most int) {
			t.Helper()
			before := b.measures
			b.wait(time.Hour)
			if n := b.measures - before; n < least || n > most {
				t.Errorf("%s it measures %d times an hour, want %d to %d", what, n, least, most)
			}
		}
		b.runs, b.due = 1, time.Minute
		more("while a handler runs,", 59, 61)
		b.runs = 0
		more("while tasks are due,", 59, 61)
		b.others = true
		more("while another worker does,", 0, 0)
		b.others = false
		more("idle, after that,", 0, 0)
	})
}

// TestTallyOfManyKinds: kinds beyond the first 200 are added up, and nothing is lost.
func TestTallyOfManyKinds(t *testing.T) {
	t.Parallel()
	var tally Tally
	for i := range 1000 {
		tally.of("default", fmt.Sprint("k", i)).Done++
	}
	list := tally.Take()
	var n int64
	for _, s := range list {
		n += s.Done
	}
	if len(list) != mostPairs+1 || n != 1000 || list[0].Kind != "" || list[0].Done != 800 {
		t.Errorf("%d sums of %d runs, first %+v", len(list), n, list[0])
	}
	if again := tally.Take(); len(again) != 0 {
		t.Errorf("a second look has %d sums, want none", len(again))
	}
	var d store.Distribution
	for _, took := range []time.Duration{0, 10 * time.Millisecond, 11 * time.Millisecond, time.Second, time.Hour, 2 * time.Hour} {
		note(&d, took)
	}
	if want := [8]int64{2, 1, 1, 0, 0, 0, 1, 1}; d.In != want || d.Max != (2*time.Hour).Microseconds() {
		t.Errorf("the distribution is %+v, want %v", d, want)
	}
}

// countedRun returns a run of a task that has failed some times, and is due.
func countedRun(attempts int) *run.Run {
	return &run.Run{
		Env: &run.Env{Queue: "default"}, Took: time.Millisecond,
		ClaimResult: outcome.ClaimResult{
			Policy: control.Compile(backoff.Zizq()),
			Claim:  &store.Claim{From: store.Lane{State: "open", Kind: "k", Attempts: attempts}},
		},
	}
}

// TestTalliesAllocateNothing: once a queue and a kind are known, counting a run allocates nothing.
func TestTalliesAllocateNothing(t *testing.T) {
	var tally Tally
	r := countedRun(2)
	if n := testing.AllocsPerRun(1000, func() { tally.Started(r); tally.Ended(r, outcome.Retried) }); n != 0 {
		t.Errorf("a run that is counted makes %v allocations, want none", n)
	}
	if list := tally.Take(); len(list) != 1 || list[0].Started != 1001 || list[0].Failed != 1001 || list[0].Lag.Sum != 0 {
		t.Errorf("the sums are %+v", list)
	}
}

// BenchmarkTally counts a run.
func BenchmarkTally(b *testing.B) {
	for _, attempts := range []int{0, 2} {
		b.Run(fmt.Sprint(attempts), func(b *testing.B) {
			var tally Tally
			r := countedRun(attempts)
			for b.Loop() {
				tally.Started(r)
				tally.Ended(r, outcome.Retried)
			}
		})
	}
}
