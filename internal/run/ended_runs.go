package run

import (
	"maps"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

const (
	// recentTime is the period over which the recent runs of a worker are counted.
	recentTime = 5 * time.Minute
	// latestTime is the period over which the latest runs are counted.
	latestTime = 30 * time.Second
)

// EndedRuns counts the runs of a worker that have ended, by kind.
type EndedRuns struct {
	mu      sync.Mutex
	Kinds   map[string]store.Runs // counted since the start
	samples []runSample           // of the last recentTime, the oldest first; only the announcer uses them
}

// runSample counts the runs that had ended at a time.
type runSample struct {
	at    time.Time
	kinds map[string]store.Runs
}

// count counts settled runs. It leaves out lost tasks.
func (e *EndedRuns) count(batch []*Run, lost map[int64]bool) {
	if len(batch) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Kinds == nil {
		e.Kinds = map[string]store.Runs{}
	}
	kind, runs := batch[0].Claim.From.Kind, store.Runs{} // most batches have one kind
	for _, r := range batch {
		if r.Claim.From.Kind != kind {
			e.Kinds[kind] = e.Kinds[kind].Add(1, runs)
			kind, runs = r.Claim.From.Kind, store.Runs{}
		}
		switch {
		case r.end.State == statements.StateDone && (!lost[r.Claim.ID] || r.end.MaybeSettled):
			runs.Done++
		case r.end.Error.Valid && r.end.State != statements.StateCancelled && !lost[r.Claim.ID]:
			runs.Failed++
		}
	}
	e.Kinds[kind] = e.Kinds[kind].Add(1, runs)
}

// Take counts the runs that have ended since the start, and recently. The first call is at the start.
func (e *EndedRuns) Take() (all store.Runs, recent store.Recent) {
	e.mu.Lock()
	now := runSample{time.Now(), maps.Clone(e.Kinds)}
	e.mu.Unlock()
	e.samples = append(e.samples, now)
	for len(e.samples) > 2 && now.at.Sub(e.samples[1].at) >= recentTime {
		e.samples = e.samples[1:]
	}
	latest := e.samples[0]
	for _, sample := range e.samples[:len(e.samples)-1] {
		if now.at.Sub(sample.at) >= latestTime {
			latest = sample
		}
	}
	for _, runs := range now.kinds {
		all = all.Add(1, runs)
	}
	recent.Kinds, recent.Over = now.since(e.samples[0])
	recent.Latest, recent.LatestOver = now.since(latest)
	return all, recent
}

// since returns the runs of kinds between two samples. Kinds without an ended run are left out.
func (s runSample) since(first runSample) (kinds map[string]store.Runs, over time.Duration) {
	kinds = map[string]store.Runs{}
	for kind, runs := range s.kinds {
		if runs = runs.Add(-1, first.kinds[kind]); runs != (store.Runs{}) {
			kinds[kind] = runs
		}
	}
	return kinds, s.at.Sub(first.at)
}

// All counts the runs that have ended since the start.
func (e *EndedRuns) All() (all store.Runs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, runs := range e.Kinds {
		all = all.Add(1, runs)
	}
	return all
}
