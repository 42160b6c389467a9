package falldue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// progressEvery is the least time between two writes of progress by a worker.
const progressEvery = time.Second

// progressWriter is the role that stores what handlers report. It gathers the reports of
// all runs of a worker, and keeps the last one of each.
type progressWriter struct {
	workerID string
	write    writeProgressFunc
	events   events
	woken    chan struct{} // signalled when there is something to write

	mu   sync.Mutex
	runs map[*taskRun]struct{} // that have reported since the last write
}

// writeProgressFunc writes reports, and returns the ids of the tasks whose reports it has stored.
type writeProgressFunc func(ctx context.Context, workerID string, list []store.Progress) (stored map[int64]bool, err error)

func newProgressWriter(workerID string, write writeProgressFunc, events events) *progressWriter {
	return &progressWriter{workerID: workerID, write: write, events: events, woken: make(chan struct{}, 1), runs: map[*taskRun]struct{}{}}
}

// reported notes that a run has something to write.
func (w *progressWriter) reported(r *taskRun) {
	w.mu.Lock()
	w.runs[r] = struct{}{}
	w.mu.Unlock()
	signal(w.woken)
}

// work writes reports until ctx ends. The last report of a run is part of its settlement.
func (w *progressWriter) work(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		await(ctx, w.woken, time.Hour)
		wait := progressEvery
		if err := w.writeAll(ctx); err != nil && ctx.Err() == nil {
			w.events.progressFailed(err)
			wait = max(wait, errorPause(failures))
			failures++
		} else {
			failures = 0
		}
		_ = pause(ctx, wait) // the loop ends with ctx
	}
}

// writeAll writes what has been reported since it ran last. What cannot be written is
// dropped: the next report of the run says more. A report stays with its run until it is
// stored, since the run may end, and be settled, before that.
func (w *progressWriter) writeAll(ctx context.Context) error {
	w.mu.Lock()
	runs := w.runs
	w.runs = map[*taskRun]struct{}{}
	w.mu.Unlock()
	type report struct {
		run  *taskRun
		last *store.Progress
	}
	var list []report
	for r := range runs {
		if p, _ := r.lastProgress(); p != nil {
			list = append(list, report{r, p})
		}
	}
	// In the order of ids, so that two workers do not deadlock. Of two claims of a task
	// the later one is held.
	slices.SortFunc(list, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.last.TaskID, b.last.TaskID), cmp.Compare(b.last.Fence, a.last.Fence))
	})
	list = slices.CompactFunc(list, func(a, b report) bool { return a.last.TaskID == b.last.TaskID })
	for batch := range slices.Chunk(list, store.MaxBatch) {
		ctx, cancel := statementContext(ctx, statementTimeout)
		reports := make([]store.Progress, len(batch))
		for i, one := range batch {
			reports[i] = *one.last
		}
		stored, err := w.write(ctx, w.workerID, reports)
		cancel()
		for _, one := range batch {
			if err != nil || stored[one.last.TaskID] {
				one.run.wrote(one.last)
			} else if lost, _ := one.run.lease.state(); !lost {
				w.reported(one.run) // somebody has locked the row, an extension of its lease for example
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Progress reports how far the handler has come.
func (r *taskRun) Progress(fraction float64, message string) {
	p := progressOf(fraction, message)
	p.Key = store.Key{TaskID: r.claim.ID, Fence: r.claim.Fence}
	r.progress.mu.Lock()
	r.progress.last, r.progress.any = &p, true
	r.progress.mu.Unlock()
	r.reported(r)
}

// progressOf returns a report of a handler as it is stored, but for its task.
func progressOf(fraction float64, message string) store.Progress {
	if math.IsNaN(fraction) {
		fraction = 0
	}
	return store.Progress{Millionths: int(math.Round(min(max(fraction, 0), 1) * 1e6)), Message: storable.Text(message)}
}

// lastProgress returns what the run has reported last, or nil if that has been written, and
// whether it has reported anything at all.
func (r *taskRun) lastProgress() (last *store.Progress, reported bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	return r.progress.last, r.progress.any
}

// wrote notes that a report has been written, or will be by the settlement.
func (r *taskRun) wrote(p *store.Progress) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	if r.progress.last == p { // and not a later one
		r.progress.last = nil
	}
}
