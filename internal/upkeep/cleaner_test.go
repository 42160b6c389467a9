package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// retentionsOf returns retentions that are r for the tasks of all kinds, those without handlers
// included.
func retentionsOf(r run.Retention, kinds ...string) Retentions {
	handlers := map[string]*run.Handler{}
	for _, name := range kinds {
		handlers[name] = &run.Handler{Kind: name, Retention: r}
	}
	return Retentions{r, handlers}
}

// TestCleanerReadsOnlyTheFirstOfEachLane: a lane whose first task is kept costs no
// statement of its own, and looking for lanes takes a tenth of the time at most.
func TestCleanerReadsOnlyTheFirstOfEachLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const kept, takes = time.Hour, 30 * time.Second
		passes, batches := 0, map[string][]int64{}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		c := &Cleaner{
			queues: []string{"default"}, retentions: retentionsOf(run.Retention{Done: kept, Dead: run.Forever, Cancelled: run.Forever}, "kept", "old", "older"), events: events{slog.New(slog.DiscardHandler)},
			lanes: func(context.Context, string, string) ([]store.Head, error) {
				if time.Sleep(takes); ctx.Err() == nil { // else the rest of the pass is left out
					passes++
				}
				return []store.Head{head("kept", 1, kept-time.Second), head("old", 1, kept), head("older", 1, 2*kept)}, nil
			},
			dropOrphans: func(context.Context) error { return nil },
			dropCancels: func(context.Context, time.Duration) error { return nil },
			dropChanges: func(context.Context, time.Duration) error { return nil },
			dropWorkers: func(context.Context, time.Duration) error { return nil },
			clean: func(_ context.Context, p store.CleanParams) (int, int64, error) {
				batches[p.Lane.Kind] = append(batches[p.Lane.Kind], p.Since)
				if p.Lane.Kind == "older" && len(batches[p.Lane.Kind])%3 != 0 {
					return p.Limit, p.Since + 1, nil
				}
				return 1, p.Since + 1, nil
			},
		}
		c.Work(ctx)
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

// TestCleanerStepsOverTasksThatCannotBeDeleted: a task that the database refuses to delete
// keeps neither those beside it nor other lanes from being cleaned.
func TestCleanerStepsOverTasksThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	const n = 3*store.MaxBatch + 7
	left := map[string][]int{}
	for id := range n {
		left["a"], left["b"] = append(left["a"], id), append(left["b"], id)
	}
	refused := func(id int) bool { return id == 0 || id == 700 || id == 701 }
	tries := 0
	c := &Cleaner{
		retentions: retentionsOf(run.Retention{Done: 0, Dead: time.Hour, Cancelled: time.Hour}, "a", "b"),
		events:     events{slog.New(slog.DiscardHandler)}, classify: func(error) dialect.Class { return dialect.Other },
		lanes: func(context.Context, string, string) ([]store.Head, error) {
			return []store.Head{head("a", 1, 2*time.Hour), head("b", 1, 2*time.Hour)}, nil
		},
		clean: func(_ context.Context, p store.CleanParams) (int, int64, error) {
			tries++
			list := left[p.Lane.Kind] // all with the same anchor
			list = list[min(len(list), p.Skip):]
			list = list[:min(len(list), p.Limit)]
			if slices.ContainsFunc(list, refused) {
				return len(list), p.Since, errors.New("another table refers to it")
			}
			left[p.Lane.Kind] = slices.Delete(left[p.Lane.Kind], p.Skip, p.Skip+len(list))
			return len(list), p.Since, nil
		},
	}
	_, _ = c.cleanState(t.Context(), "default", "dead") // the error says which could not be deleted
	for kind, ids := range left {
		if !slices.Equal(ids, []int{0, 700, 701}) {
			t.Errorf("of %q %d tasks are left, want 0, 700 and 701", kind, len(ids))
		}
	}
	if tries > 160 {
		t.Errorf("it took %d statements", tries)
	}
	refused = func(int) bool { return true }
	tries = 0
	_, _ = c.cleanState(t.Context(), "default", "dead")
	if tries > 2*(maxUndeletable+20) {
		t.Errorf("a database that refuses all is asked %d times", tries)
	}
}

// TestPagesAreCleanedAsFastAsRowsAreMade: however many keys come in a second, a table has few more than
// those that are kept. One whose rows are all in use is looked at seldom, and an empty one hardly at all.
func TestPagesAreCleanedAsFastAsRowsAreMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perSecond, used    int
		mostRows, mostLook int
	}{
		"many":    {perSecond: 150, used: 2_000, mostRows: 150*60*20 + 2_000, mostLook: 3600 * 20},
		"some":    {perSecond: 20, used: 10_000, mostRows: 20*60*20 + 10_000, mostLook: 3600 * 5},
		"in use":  {used: 50_000, mostRows: 50_000, mostLook: 10 * 300},
		"nothing": {mostLook: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				table, start, looks, most, next := map[int]time.Time{}, time.Now(), 0, 0, 0
				var ids []int // in their order
				for range c.used {
					table[next] = start.Add(1000 * time.Hour) // it is in use
					ids, next = append(ids, next), next+1
				}
				made := time.Now()
				cleaner := &PageCleaner[int]{keep: keepUniques, failed: func(err error) { t.Error(err) }}
				cleaner.drop = func(_ context.Context, after int, keep time.Duration) (last, dropped int, err error) {
					looks++
					for ; made.Before(time.Now()) && c.perSecond > 0; made = made.Add(time.Second / time.Duration(c.perSecond)) {
						table[next] = made
						ids, next = append(ids, next), next+1
					}
					most = max(most, len(table))
					first, _ := slices.BinarySearch(ids, after+1)
					if after == 0 {
						first = 0
					}
					end := min(first+store.MaxBatch, len(ids))
					page := slices.Clone(ids[first:end])
					if len(page) == store.MaxBatch {
						last = page[len(page)-1]
					}
					ids = slices.Delete(ids, first, end)
					kept := slices.DeleteFunc(page, func(id int) bool {
						free := time.Since(table[id]) > keep
						if free {
							delete(table, id)
						}
						return free
					})
					dropped = end - first - len(kept)
					ids = slices.Insert(ids, first, kept...)
					time.Sleep(3 * time.Millisecond) // by the clock of the bubble
					return last, dropped, nil
				}
				cleaner.Work(ctx)
				if most > c.mostRows || looks > c.mostLook {
					t.Errorf("the table had up to %d rows, want %d at most, and in an hour was looked at %d times, want %d at most", most, c.mostRows, looks, c.mostLook)
				}
				t.Logf("up to %d rows, %d looks", most, looks)
			})
		})
	}
}
