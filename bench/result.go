package main

import (
	"encoding/json"
	"os"
	"slices"
)

// result is what was measured of one system.
type result struct {
	Engine  string    `json:"engine"`
	Measure string    `json:"measure"`
	System  string    `json:"system"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Runs    []float64 `json:"runs"`
	// Command prints it again, on the machine of its part.
	Command string `json:"command,omitempty"`
}

// results are in the order in which they were first measured.
type results []result

// add adds the value of one more run.
func (r *results) add(engine, measure, system string, value float64) {
	i := slices.IndexFunc(*r, func(x result) bool { return x.Measure == measure && x.System == system })
	if i < 0 {
		i = len(*r)
		*r = append(*r, result{Engine: engine, Measure: measure, System: system})
	}
	x := &(*r)[i]
	x.Runs = append(x.Runs, value)
	sorted := slices.Sorted(slices.Values(x.Runs))
	x.Min, x.Max = sorted[0], sorted[len(sorted)-1]
	x.Median = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// of finds the result of a system.
func (r results) of(measure, system string) (result, bool) {
	i := slices.IndexFunc(r, func(x result) bool { return x.Measure == measure && x.System == system })
	if i < 0 {
		return result{}, false
	}
	return r[i], true
}

// write stores the results as JSON.
func (r results) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
