package run

import (
	"maps"
	"slices"
	"sync"

	"github.com/falldue/falldue/internal/outcome"
)

// ClaimedRuns has every run of a worker from its claim until it is settled or lost.
type ClaimedRuns struct {
	mu   sync.Mutex
	runs map[*Run]struct{}
}

// NewClaimedRuns returns a set without runs.
func NewClaimedRuns() *ClaimedRuns { return &ClaimedRuns{runs: map[*Run]struct{}{}} }

// Add adds runs whose claims were just taken.
func (h *ClaimedRuns) Add(runs ...*Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range runs {
		h.runs[r] = struct{}{}
	}
}

// drop removes runs whose claims are settled or lost.
func (h *ClaimedRuns) drop(runs ...*Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range runs {
		delete(h.runs, r)
	}
}

// replace puts a run in the place of another run of its claim, which loses its lease to it.
func (h *ClaimedRuns) replace(r, by *Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.lease.passTo(&by.lease)
	if _, has := h.runs[r]; has {
		delete(h.runs, r)
		h.runs[by] = struct{}{}
	}
}

// Count returns the number of runs.
func (h *ClaimedRuns) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

// Sorted returns the runs in the order of their tasks' ids.
func (h *ClaimedRuns) Sorted() []*Run {
	list := h.list()
	slices.SortFunc(list, byTask)
	return list
}

// list returns the runs.
func (h *ClaimedRuns) list() []*Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.runs))
}

// has reports whether the claim of a run is neither settled nor lost.
func (h *ClaimedRuns) has(r *Run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.runs[r]
	return has
}

// Cancelled ends the runs of cancelled tasks. fences has the highest fence to end, by task id: a task
// may have been retried since its cancel.
func (h *ClaimedRuns) Cancelled(fences map[int64]int64) {
	for _, r := range h.list() {
		if fence, ok := fences[r.Claim.ID]; ok && r.Claim.Fence <= fence {
			r.lease.loseBy(outcome.ErrCancelled)
		}
	}
}
