package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestMedianAndRange(t *testing.T) {
	t.Parallel()
	var all results
	for _, v := range []float64{5, 1, 3, 4} {
		all.add(sqlite, "m", "s", v)
	}
	if r, ok := all.of("m", "s"); !ok || r.Median != 3.5 || r.Min != 1 || r.Max != 5 || len(r.Runs) != 4 {
		t.Errorf("got %+v, want the median 3.5 of 1 to 5", r)
	}
}

func TestReplaceKeepsOtherMeasures(t *testing.T) {
	t.Parallel()
	before := []part{
		{setting{Machine: "old"}, results{{Measure: "drain_kept", System: "raw"}}},
		{setting{Machine: "other"}, results{{Measure: "fail", System: "raw"}, {Measure: "drain_kept", System: "river"}}},
		{setting{Machine: "same"}, results{{Measure: "fail", System: "falldue"}}},
	}
	after := replace(before, part{setting{Machine: "same"}, results{{Measure: "drain_kept", System: "raw", Median: 2}}})
	want := []part{
		{setting{Machine: "other"}, results{{Measure: "fail", System: "raw"}}},
		{setting{Machine: "same"}, results{{Measure: "drain_kept", System: "raw", Median: 2}, {Measure: "fail", System: "falldue"}}},
	}
	if !reflect.DeepEqual(after, want) {
		t.Errorf("got %+v, want %+v", after, want)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0.4567: "0.457", 12: "12", 999.9: "1,000", 1234: "1,230", 104_900: "105,000", 1_234_567: "1,230,000"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}

// TestMeasuresOnSQLite runs most measures with few tasks, on the engine that needs
// no server, and writes the document.
func TestMeasuresOnSQLite(t *testing.T) {
	c := &config{
		engine: sqlite, systems: []string{"falldue", "raw"}, rounds: 1, tasks: 50, backlog: 100,
		measures: []string{"drain_kept", "drain_deleted", "drain_backlog", "drain_snapshot", "drain_1_process", "fail", "enqueue_many", "enqueue_1", "profile_s", "pickup_p50_ms", "first_task_ms", "idle_statements_per_minute"},
		while:    50e6, patience: 30e9, doc: filepath.Join(t.TempDir(), "benchmarks.md"),
	}
	if err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r, err := readRecord(docFolder(c.doc), sqlite)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Parts[0].Results {
		if !described(x.Measure) {
			t.Errorf("no measure describes %s", x.Measure)
		}
	}
	for _, m := range append(c.measures, "memory_mb_1", "client_us", "client_allocs") {
		for _, s := range c.systems {
			if s == rawName && slices.Contains([]string{"profile_s", "pickup_p50_ms", "first_task_ms", "idle_statements_per_minute"}, m) {
				continue // which is not of raw on SQLite
			}
			if x, ok := r.Parts[0].Results.of(m, s); !ok || x.Median <= 0 {
				t.Errorf("%s of %s: got %+v, want a figure", m, s, x)
			}
		}
	}
}
