package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/words"
)

// KindRuns counts the outcomes of a kind's recent runs on live workers.
type KindRuns struct {
	Kind string
	Runs
	// Over is the length of the period in which the runs were counted: up to five minutes, or about 30 seconds if most
	// attempts failed in the last 30 seconds.
	Over time.Duration
}

const (
	// failingShare is the share of attempts that fail from which a kind is failing, if so many
	// attempts have failed.
	failingShare = 0.5
	failingLeast = 5
)

// Ratio returns the share of attempts that failed, from 0 to 1.
func (k KindRuns) Ratio() float64 {
	if k.Failed == 0 {
		return 0
	}
	return float64(k.Failed) / float64(k.Done+k.Failed)
}

// Failing reports whether at least half of the attempts failed, and at least five.
func (k KindRuns) Failing() bool { return k.Failed >= failingLeast && k.Ratio() >= failingShare }

// String describes the runs in words, such as "9 of 10 attempts (90%) failed in the last 5m".
func (k KindRuns) String() string {
	return fmt.Sprintf("%s of %s (%.0f%%) failed in the last %s", words.Number(k.Failed), words.Count(k.Done+k.Failed, "attempt"), 100*k.Ratio(), words.Span(k.Over.Round(time.Second)))
}

// RunsByKind returns how the runs of each kind have ended on the live workers of a list. The kind with the largest
// share of failures comes first.
func RunsByKind(workers []Worker) (list []KindRuns) {
	latest, recent := map[string]KindRuns{}, map[string]KindRuns{}
	for _, w := range workers {
		if w.Live() {
			addRuns(latest, w.Latest, w.LatestTime)
			addRuns(recent, w.Recent, w.RecentTime)
		}
	}
	for kind, k := range recent {
		if l := latest[kind]; l.Failing() {
			k = l
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b KindRuns) int {
		return cmp.Or(cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

func addRuns(sum map[string]KindRuns, kinds map[string]Runs, over time.Duration) {
	for kind, r := range kinds {
		k := sum[kind]
		sum[kind] = KindRuns{kind, Runs{k.Done + r.Done, k.Failed + r.Failed}, max(k.Over, over)}
	}
}

// topErrors is how many errors of a kind a finding names.
const topErrors = 3

// checkFailures looks for kinds most of whose attempts fail.
func (o *Ops) checkFailures(ctx context.Context) ([]Finding, error) {
	workers, err := o.Workers(ctx)
	if err != nil {
		return nil, err
	}
	failing := slices.DeleteFunc(RunsByKind(workers), func(k KindRuns) bool { return !k.Failing() })
	if len(failing) == 0 {
		return fine("no kind fails most of its attempts"), nil
	}
	failures, err := o.Failures(ctx)
	var findings []Finding
	for _, k := range failing {
		f := Finding{Level: Attention, Text: fmt.Sprintf("kind %s fails: %v", k.Kind, k), Advice: fmt.Sprintf("see \"falldue errors --kind %s\"; \"falldue policy set\" slows retries down", k.Kind)}
		for _, g := range failures.Of(k.Kind).Top(topErrors) {
			f.Text += "; " + g.String()
		}
		findings = append(findings, f)
	}
	return findings, err
}
