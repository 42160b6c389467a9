package falldue

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestCleanerReadsOnlyTheFirstOfEachLane: a lane whose first task is kept costs no
// statement of its own, and looking for lanes takes a tenth of the time at most.
func TestCleanerReadsOnlyTheFirstOfEachLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const retention, takes = time.Hour, 30 * time.Second
		passes, batches := 0, map[string][]int64{}
		c := &cleaner{
			queues: []string{"default"}, doneRetention: retention, events: events{slog.New(slog.DiscardHandler)},
			lanes: func(context.Context, string, string) ([]store.Head, error) {
				passes++
				time.Sleep(takes)
				return []store.Head{head("kept", 1, retention-time.Second), head("old", 1, retention), head("older", 1, 2*retention)}, nil
			},
			clean: func(_ context.Context, _ string, lane store.Lane, since int64, _ time.Duration) (int, int64, error) {
				batches[lane.Kind] = append(batches[lane.Kind], since)
				if lane.Kind == "older" && len(batches[lane.Kind])%3 != 0 {
					return store.MaxBatch, since + 1, nil
				}
				return 1, since + 1, nil
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		c.work(ctx)
		if share := float64(passes) * takes.Hours() / 24; share > 0.1 || share < 0.08 {
			t.Errorf("%d passes took %.3f of the time", passes, share)
		}
		if len(batches["kept"]) != 0 || len(batches["old"]) != passes || len(batches["older"]) != 3*passes {
			t.Errorf("in %d passes %d batches are of the lane that is kept, %d and %d of the others", passes, len(batches["kept"]), len(batches["old"]), len(batches["older"]))
		}
		if b := batches["older"]; b[1] != b[0]+1 || b[2] != b[1]+1 || b[3] != b[0] {
			t.Errorf("batches look from %v; each should begin where the last one ended", b[:4])
		}
	})
}
