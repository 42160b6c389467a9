package promfalldue_test

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/promfalldue"
)

// metricsOfARun returns a function that records what a run records: its start, its waits, its handler and its outcome.
func metricsOfARun(t testing.TB) func() {
	t.Helper()
	m, err := promfalldue.New(nil, promfalldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	info := falldue.RunInfo{Queue: "q", Kind: "k", Attempt: 1}
	event := m.Hooks().Event
	handle := m.Recorder().Run()(func(context.Context, *falldue.Run) error { return nil })
	run := &falldue.Run{RunInfo: info}
	run.DueAt = time.Now().Add(-time.Minute)
	run.ReadyAt, run.StartedAt = run.DueAt.Add(time.Second), run.DueAt.Add(2*time.Second)
	return func() {
		event(falldue.Event{RunInfo: info})
		if err := handle(t.Context(), run); err != nil {
			t.Error(err)
		}
		event(falldue.Event{RunInfo: info, Outcome: falldue.OutcomeDone})
	}
}

func TestARunAllocatesLittle(t *testing.T) {
	if n := testing.AllocsPerRun(100, metricsOfARun(t)); n > 5 {
		t.Errorf("the metrics of a run make %v allocations, want up to 5", n)
	}
}

// BenchmarkMetricsOfARun is to take less than 3 µs.
func BenchmarkMetricsOfARun(b *testing.B) {
	record := metricsOfARun(b)
	b.ReportAllocs()
	for b.Loop() {
		record()
	}
}
