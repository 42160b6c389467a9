package claim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestProberAsksForSweeps where ids do not ascend: every 12 milliseconds while tasks run, twice a
// second when none do, and not at all when none have run for long.
func TestProberAsksForSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s storedTasks
		p, poller := proberOf(&s)
		p.byID = false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Work(ctx)
		requests := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if poller.sweepRequested.Swap(false) {
					n++
				}
			}
			return n
		}
		requests(20 * time.Second)
		if n := requests(time.Minute); n < 119 || n > 121 {
			t.Errorf("an idle worker asks for %d sweeps a minute, want 120", n)
		}
		requests(asleepAfter)
		if n := requests(time.Minute); n > 0 {
			t.Errorf("a worker that is asleep asks for %d sweeps a minute", n)
		}
		poller.lastClaim.Store(time.Now().UnixNano())
		requests(time.Second / 2)
		poller.lastClaim.Store(time.Now().UnixNano())
		if n := requests(time.Second / 4); n < 15 || n > 22 {
			t.Errorf("in a quarter of a second after a task the worker asks for %d sweeps, want 20", n)
		}
		if n, _ := s.count(); n > 0 {
			t.Errorf("there were %d probes by ids", n)
		}
	})
}
