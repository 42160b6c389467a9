package main

import (
	"encoding/json"
	"os"
	"slices"
)

// result is the result of one measure of one system.
type result struct {
	Engine  string    `json:"engine"`
	Measure string    `json:"measure"`
	System  string    `json:"system"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Runs    []float64 `json:"runs"`
	// Command is the command line that printed the result.
	Command string `json:"command,omitempty"`
}

// results is a list of results, in the order in which they were first measured.
type results []result

// add adds the value of another run.
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

// of returns the result of a measure and a system.
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
