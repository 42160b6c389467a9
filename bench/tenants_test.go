package main

import (
	"path/filepath"
	"testing"
	"time"
)

// TestTenantsShareByTheirWeights measures a tenant with three times the weight, and single tasks alongside a campaign.
func TestTenantsShareByTheirWeights(t *testing.T) {
	c := &config{
		engine: sqlite, systems: []string{tunedName}, rounds: 1, backlog: 10_000, measures: []string{"weights_ratio", "campaign_ms"},
		while: time.Second, patience: 30 * time.Second, doc: filepath.Join(t.TempDir(), "benchmarks.md"),
	}
	if err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r, err := readRecord(docFolder(c.doc), sqlite)
	if err != nil {
		t.Fatal(err)
	}
	for measure, most := range map[string]float64{"weights_ratio": 3.6, "weights_alone_handlers": handlers, "campaign_ms": 5000, "campaign_ended": handlers} {
		x, ok := r.Parts[0].Results.of(measure, tunedName)
		if !ok || x.Median > most || measure == "weights_ratio" && x.Median < 2.4 {
			t.Errorf("%s is %+v, want %v at most", measure, x, most)
		}
	}
}
