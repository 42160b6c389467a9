package run

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// progressEvery is the least time between two writes of progress by a worker.
const progressEvery = time.Second

// ProgressWriter is the role that stores the progress that handlers report. It gathers the reports of
// all runs of a worker, and keeps the last report of each run.
type ProgressWriter struct {
	workerID string
	table    progressTable
	events   events
	woken    chan struct{} // signalled when there is a report to write

	mu   sync.Mutex
	runs map[*Run]struct{} // runs that have reported since the last write
}

// progressTable stores reports, and returns the ids of the tasks whose reports it has stored.
type progressTable interface {
	WriteProgress(ctx context.Context, workerID string, list []store.Progress) (stored map[int64]bool, err error)
}

// NewProgressWriter returns a writer of the progress of a worker's runs.
func NewProgressWriter(workerID string, table progressTable, log *slog.Logger) *ProgressWriter {
	return &ProgressWriter{workerID: workerID, table: table, events: events{log}, woken: make(chan struct{}, 1), runs: map[*Run]struct{}{}}
}

// Reported notes that a run has a report to write.
func (w *ProgressWriter) Reported(r *Run) {
	w.mu.Lock()
	w.runs[r] = struct{}{}
	w.mu.Unlock()
	retry.Signal(w.woken)
}

// Work writes reports until ctx ends. The last report of a run is part of its settlement.
func (w *ProgressWriter) Work(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		retry.Await(ctx, w.woken, time.Hour)
		wait := progressEvery
		if err := w.writeAll(ctx); err != nil && ctx.Err() == nil {
			w.events.progressFailed(err)
			wait = max(wait, retry.ErrorPause(failures))
			failures++
		} else {
			failures = 0
		}
		_ = retry.Pause(ctx, wait) // the loop ends with ctx
	}
}

// writeAll writes the reports since its last call. A report that cannot be written is dropped: the
// next report of the run replaces it. Until a report is stored it stays with its run, which may be
// settled before then.
func (w *ProgressWriter) writeAll(ctx context.Context) error {
	w.mu.Lock()
	runs := w.runs
	w.runs = map[*Run]struct{}{}
	w.mu.Unlock()
	type report struct {
		run  *Run
		last *store.Progress
	}
	var list []report
	for r := range runs {
		if p, _ := r.lastProgress(); p != nil {
			list = append(list, report{r, p})
		}
	}
	// In the order of ids, so that two workers do not deadlock. Of two claims of a task,
	// only the later one is valid.
	slices.SortFunc(list, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.last.TaskID, b.last.TaskID), cmp.Compare(b.last.Fence, a.last.Fence))
	})
	list = slices.CompactFunc(list, func(a, b report) bool { return a.last.TaskID == b.last.TaskID })
	for batch := range slices.Chunk(list, store.MaxBatch) {
		ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		reports := make([]store.Progress, len(batch))
		for i, one := range batch {
			reports[i] = *one.last
		}
		stored, err := w.table.WriteProgress(ctx, w.workerID, reports)
		cancel()
		for _, one := range batch {
			if err != nil || stored[one.last.TaskID] {
				one.run.wrote(one.last)
			} else if lost, _ := one.run.Lease.State(); !lost {
				w.Reported(one.run) // another transaction has locked the row, to extend the lease for example
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Progress reports how far the handler has come.
func (r *Run) Progress(fraction float64, message string) {
	p := NewProgress(fraction, message)
	p.Key = store.Key{TaskID: r.Claim.ID, Fence: r.Claim.Fence}
	r.progress.mu.Lock()
	r.progress.last, r.progress.any = &p, true
	r.progress.mu.Unlock()
	r.Reports.Reported(r)
}

// NewProgress returns a report of a handler to store. The caller sets its task.
func NewProgress(fraction float64, message string) store.Progress {
	if math.IsNaN(fraction) {
		fraction = 0
	}
	return store.Progress{Millionths: int(math.Round(min(max(fraction, 0), 1) * 1e6)), Message: storable.Text(message)}
}

// lastProgress returns the run's last report, or nil if it has been written, and whether there has
// been any report.
func (r *Run) lastProgress() (last *store.Progress, reported bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	return r.progress.last, r.progress.any
}

// wrote notes that a report has been written, or will be by the settlement.
func (r *Run) wrote(p *store.Progress) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	if r.progress.last == p { // there may be a later report
		r.progress.last = nil
	}
}
