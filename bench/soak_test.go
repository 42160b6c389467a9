package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSoakOnSQLite runs a soak of a few seconds, and writes its files and the document.
func TestSoakOnSQLite(t *testing.T) {
	folder := t.TempDir()
	c := &config{
		engine: sqlite, soak: 2 * time.Second, every: 500 * time.Millisecond, patience: 30 * time.Second,
		json: filepath.Join(folder, "soak.json"), plot: filepath.Join(t.TempDir(), "soak.svg"), doc: filepath.Join(folder, "benchmarks.md"), command: "go run . --soak 2s",
	}
	if err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var r soakRecord
	text, err := os.ReadFile(c.json)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Samples) != 4 || r.Length != c.soak || r.Window != time.Second || r.Command != c.command || r.Setting.Server == "" {
		t.Fatalf("%d samples, length %v, medians of %v, command %q, server %q", len(r.Samples), r.Length, r.Window, r.Command, r.Setting.Server)
	}
	last := r.Samples[3]
	if last.Minute < 1.9/60 || last.Started == 0 || last.P99 < last.P50 || last.P50 <= 0 || last.TableMB <= 0 || last.Rows == 0 || last.Goroutines == 0 {
		t.Errorf("the last sample is %+v", last)
	}
	document, err := os.ReadFile(c.doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"|  | SQLite |", "| dead rows | 0 to 0 |", "| free MB |", "`" + c.command + "`", "in the last 1s: "} {
		if !strings.Contains(string(document), want) {
			t.Errorf("no %q in the document", want)
		}
	}
	for _, path := range []string{c.plot, filepath.Join(folder, "soak", "sqlite.svg"), filepath.Join(folder, "soak", "sqlite.json")} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSoakIsLongerThanItsInterval(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, time.Minute} {
		err := run(t.Context(), &config{engine: sqlite, soak: time.Second, every: every})
		if err == nil || !strings.Contains(err.Error(), "--every") {
			t.Errorf("a second, every %v: error %v", every, err)
		}
	}
}

// TestMediansOfASoakAreOfItsBeginAndItsEnd has an hour in which waits rise from minute 45 on.
func TestMediansOfASoakAreOfItsBeginAndItsEnd(t *testing.T) {
	t.Parallel()
	var samples []soakSample
	for minute := range 60 {
		s := soakSample{Minute: float64(minute + 1), Started: 60_000, P50: 2, P99: 50, DeadRows: 100 + minute}
		if minute >= 45 {
			s.P50 = 3
		}
		samples = append(samples, s)
	}
	samples[3].P99 = 5000 // which a median leaves out
	r := newSoakRecord(postgres, time.Minute, samples)
	if r.Length != time.Hour || r.Window != 10*time.Minute {
		t.Errorf("length %v, window %v", r.Length, r.Window)
	}
	for _, want := range []soakFigure{{"p50 ms", 2, 3}, {"p99 ms", 50, 50}, {"dead rows", 104.5, 154.5}} {
		if !slices.Contains(r.Figures, want) {
			t.Errorf("no %+v in %+v", want, r.Figures)
		}
	}
	if got, want := r.Rises(), "p50 ms (2, then 3), dead rows (104, then 154)"; got != want {
		t.Errorf("rises: %s, want %s", got, want)
	}
	if got := r.table(); !strings.Contains(got, "FIRST 10M0S") || !strings.Contains(got, "LAST 10M0S") {
		t.Errorf("the table is\n%s", got)
	}
}
