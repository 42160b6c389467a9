package systemtest

import (
	"context"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestLowPrioritiesHaveTheirShare: urgent tasks never end, since each enqueues the next one, and tasks of a later
// priority still have the share that was set. Without a share they wait.
func TestLowPrioritiesHaveTheirShare(t *testing.T) {
	t.Parallel()
	const urgent = 50 // at a time
	for _, c := range []struct {
		name                    string
		share, concurrency, low int
	}{{"10 percent, one handler", 10, 1, 60}, {"25 percent, many handlers", 25, 20, 400}, {"no share", 0, 1, 60}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, engine string) {
				q := migratedQueue(t, testdb.Open(t, engine), falldue.Config{
					MaxPrefetch: -1,
					Queues:      map[string]falldue.QueueConfig{"default": {Concurrency: c.concurrency, LowPriorityShare: c.share}},
				})
				urgently, later := falldue.NewKind[int]("urgent", falldue.KindConfig{}), falldue.NewKind[int]("later", falldue.KindConfig{Priority: 10})
				ran := make(chan string, 10_000)
				falldue.Handle(q, urgently, func(ctx context.Context, _ falldue.Task[int]) error {
					_, err := urgently.Enqueue(ctx, q, 0)
					ran <- "urgent"
					return err
				})
				falldue.Handle(q, later, func(context.Context, falldue.Task[int]) error { ran <- "low"; return nil })
				if _, err := later.EnqueueMany(t.Context(), q, make([]int, c.low)); err != nil {
					t.Fatal(err)
				}
				if _, err := urgently.EnqueueMany(t.Context(), q, make([]int, urgent)); err != nil {
					t.Fatal(err)
				}
				defer runUntil(t, q)()
				counts := map[string]int{}
				for counts["low"] < c.low && counts["urgent"] < 1500 {
					counts[<-ran]++
				}
				all := counts["low"] + counts["urgent"]
				share := 100 * float64(counts["low"]) / float64(all)
				t.Logf("%d of %d tasks are of the later priority: %.1f%%", counts["low"], all, share)
				if share < 0.7*float64(c.share) || share > 1.3*float64(c.share) {
					t.Errorf("the later priority had %.1f%% of %d tasks, want %d%%", share, all, c.share)
				}
			})
		})
	}
}
