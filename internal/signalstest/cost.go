package signalstest

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/signals"
)

// maxAllocations is how many allocations the metrics of a run may cost.
const maxAllocations = 5

// run returns a function that measures one run: its begin, its handler and its end.
func run(r *signals.Recorder) func() {
	event := r.Hooks().Event
	info := falldue.RunInfo{ID: 1, Queue: "default", Kind: "pay", Attempt: 1, MaxAttempts: 5, DueAt: time.Now(), ReadyAt: time.Now(), StartedAt: time.Now()}
	handler := r.Run()(func(context.Context, *falldue.Run) error { return nil })
	begun, ended := falldue.Event{RunInfo: info}, falldue.Event{RunInfo: info, Outcome: falldue.OutcomeDone}
	one := &falldue.Run{RunInfo: info}
	return func() {
		event(begun)
		_ = handler(context.Background(), one)
		event(ended)
	}
}

// CheckAllocations fails if the metrics of a run cost more than 5 allocations.
func CheckAllocations(t *testing.T, r *signals.Recorder) {
	t.Helper()
	if n := testing.AllocsPerRun(1000, run(r)); n > maxAllocations {
		t.Errorf("the metrics of a run cost %v allocations, want %d at most", n, maxAllocations)
	}
}

// Benchmark measures the metrics of a run.
func Benchmark(b *testing.B, r *signals.Recorder) {
	f := run(r)
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}
