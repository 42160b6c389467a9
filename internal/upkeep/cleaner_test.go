package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// retentionsOf returns retentions that are r for the tasks of all kinds, including kinds without
// handlers.
func retentionsOf(r run.Retention, kinds ...string) Retentions {
	handlers := map[string]*run.Handler{}
	for _, name := range kinds {
		handlers[name] = &run.Handler{Kind: name, Retention: r}
	}
	return Retentions{r, handlers}
}

// TestCleanerReadsOnlyTheFirstOfEachLane: a lane whose first task is kept costs no
// statement of its own, and the search for lanes takes a tenth of the time at most.
func TestCleanerReadsOnlyTheFirstOfEachLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const kept, takes = time.Hour, 30 * time.Second
		passes, batches := 0, map[string][]int64{}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		c := &Cleaner{
			queues: func() []string { return []string{"default"} }, retentions: retentionsOf(run.Retention{Done: kept, Dead: run.Forever, Cancelled: run.Forever}, "kept", "old", "older"), events: events{slog.New(slog.DiscardHandler)}, table: fakeCleanTable{lanes: func(context.Context, []string, string) ([]store.Found, error) {
				if time.Sleep(takes); ctx.Err() == nil { // else the rest of the pass is left out
					passes++
				}
				return foundHere(head("kept", 1, kept-time.Second), head("old", 1, kept), head("older", 1, 2*kept)), nil
			},
				clean: func(_ context.Context, p store.CleanParams) (int, int64, error) {
					batches[p.Lane.Kind] = append(batches[p.Lane.Kind], p.Since)
					if p.Lane.Kind == "older" && len(batches[p.Lane.Kind])%3 != 0 {
						return p.Limit, p.Since + 1, nil
					}
					return 1, p.Since + 1, nil
				},
			}}
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

// TestCleanerStepsOverTasksThatCannotBeDeleted: if the database refuses to delete a task, the other
// tasks of its lane and other lanes are cleaned nevertheless.
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
		queues:     func() []string { return []string{"default"} },
		retentions: retentionsOf(run.Retention{Done: 0, Dead: time.Hour, Cancelled: time.Hour}, "a", "b"),
		events:     events{slog.New(slog.DiscardHandler)},
		table: fakeCleanTable{lanes: func(context.Context, []string, string) ([]store.Found, error) {
			return foundHere(head("a", 1, 2*time.Hour), head("b", 1, 2*time.Hour)), nil
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
			}},
	}
	_, _ = c.cleanState(t.Context(), "dead") // the error names a task that could not be deleted
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
	_, _ = c.cleanState(t.Context(), "dead")
	if tries > 2*(maxUndeletable+20) {
		t.Errorf("a database that refuses all is asked %d times", tries)
	}
}

// TestChoresAreDoneOnTime: each chore is done as often as the table of chores requires, even after a
// failure. The failure is logged.
func TestChoresAreDoneOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+time.Second)
		defer cancel()
		often, seldom, failures := 0, 0, 0
		c := &Cleaner{retentions: retentionsOf(run.Retention{Done: run.Forever, Dead: run.Forever, Cancelled: run.Forever}), chores: []*chore{
			{every: time.Minute, keep: time.Hour, drop: func(_ context.Context, keep time.Duration) error {
				if often++; keep != time.Hour {
					t.Errorf("rows are kept for %v", keep)
				}
				return errors.New("denied")
			}, failed: func(error) { failures++ }},
			{every: time.Hour, drop: func(context.Context, time.Duration) error { seldom++; return nil }},
		}}
		c.Work(ctx)
		if often < 160 || often > 181 || failures != often || seldom < 3 || seldom > 4 {
			t.Errorf("in three hours one is done %d times and fails %d times, the other is done %d times", often, failures, seldom)
		}
	})
}

// TestLimitsOfDoneTasksOfManyLanes: a pass checks some of very many lanes, and after some passes it has checked each.
func TestLimitsOfDoneTasksOfManyLanes(t *testing.T) {
	t.Parallel()
	const lanes = 3 * maxChecks
	var heads []store.Head
	for n := range lanes {
		heads = append(heads, head("many", n, time.Hour))
	}
	seen, checks := map[store.Lane]bool{}, 0
	r := retentionsOf(run.Retention{Done: run.Forever, Dead: run.Forever, Cancelled: run.Forever}, "many")
	r.Handlers["many"].Retention.MaxDone = 10 * lanes
	c := &Cleaner{queues: func() []string { return []string{"default"} }, retentions: r, events: events{slog.New(slog.DiscardHandler)}, table: fakeCleanTable{
		lanes:       func(context.Context, []string, string) ([]store.Found, error) { return foundHere(heads...), nil },
		firstToKeep: func(at store.Lane) int64 { seen[at] = true; checks++; return 0 },
	}}
	passes := 0
	for ; len(seen) < lanes && passes < 1000; passes++ {
		c.CleanAll(t.Context())
	}
	if len(seen) < lanes || checks != passes*maxChecks {
		t.Errorf("%d passes made %d checks and checked %d of %d lanes", passes, checks, len(seen), lanes)
	}
}

// TestLimitsOfDoneTasksAreSharedByLanes: each lane of a kind in a queue keeps an equal part, and no more lanes keep tasks
// than tasks may stay. Kinds without a limit keep all.
func TestLimitsOfDoneTasksAreSharedByLanes(t *testing.T) {
	t.Parallel()
	r := retentionsOf(run.Retention{Done: run.Forever}, "free", "few", "many")
	r.Handlers["few"].Retention.MaxDone, r.Handlers["many"].Retention.MaxDone = 2, 1000
	found := foundHere(head("free", 1, time.Hour), head("few", 1, time.Hour), head("few", 2, 3*time.Hour), head("few", 3, 2*time.Hour),
		head("many", 1, time.Hour), head("many", 2, time.Hour), head("many", 3, time.Hour))
	found = append(found, store.Found{Queue: "other", Head: head("many", 1, time.Hour)})
	type lane struct {
		queue, kind string
		attempts    int
	}
	keep := map[lane]int{}
	for _, s := range r.surplus(found) {
		keep[lane{s.Queue, s.Kind, s.Attempts}] = s.keep
	}
	want := map[lane]int{
		{"default", "few", 1}: 1, {"default", "few", 2}: 0, {"default", "few", 3}: 1, // the oldest lane keeps none
		{"default", "many", 1}: 333, {"default", "many", 2}: 333, {"default", "many", 3}: 333, {"other", "many", 1}: 1000,
	}
	if !maps.Equal(keep, want) {
		t.Errorf("lanes keep %v, want %v", keep, want)
	}
	if !r.limited() || retentionsOf(run.Retention{}, "free").limited() {
		t.Error("limited does not report whether a kind has a limit")
	}
}

// foundHere returns lanes of the default queue, as a search for them does.
func foundHere(heads ...store.Head) (found []store.Found) {
	for _, h := range heads {
		found = append(found, store.Found{Queue: "default", Head: h})
	}
	return found
}
