package falldue

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestProgressIsWrittenOnceASecond: however much handlers report, a worker writes the
// last report of each, once a second.
func TestProgressIsWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes, last, fail := 0, map[int64]store.Progress{}, false
		var log strings.Builder
		w := newProgressWriter("me", func(_ context.Context, _ string, list []store.Progress) error {
			if writes++; fail {
				return errors.New("no answer")
			}
			seen := map[int64]bool{}
			for _, p := range list {
				if last[p.TaskID] = p; seen[p.TaskID] {
					t.Errorf("task %d is written twice at once", p.TaskID)
				}
				seen[p.TaskID] = true
			}
			return nil
		}, events{slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.work(ctx)
		synctest.Wait()
		run := func(id, fence int64) *taskRun {
			c := &store.Claim{}
			c.ID, c.Fence = id, fence
			return &taskRun{runEnv: &runEnv{reported: w.reported}, execution: execution{claim: c}}
		}
		a, again, b := run(1, 1), run(1, 2), run(2, 1)
		begin := time.Now()
		for i := range 1000 {
			a.Progress(float64(i)/1000, "")
			again.Progress(float64(i)/2000, "")
			b.Progress(-1, "b")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if passed := time.Since(begin); writes < 10 || writes > int(passed/time.Second)+1 {
			t.Errorf("%d writes in %v", writes, passed)
		}
		if p := last[1]; p.Fence != 2 || p.Millionths != 499_500 {
			t.Errorf("the last report of task 1 is %+v", p)
		}
		if p := last[2]; p.Millionths != 0 || p.Message != "b" {
			t.Errorf("the last report of task 2 is %+v", p)
		}
		if p, reported := a.takeProgress(); p != nil || !reported {
			t.Errorf("after it was written %+v is left (%v)", p, reported)
		}
		fail = true
		a.Progress(1, "")
		synctest.Wait()
		if !strings.Contains(log.String(), "cannot write the progress") {
			t.Errorf("the log is %q", log.String())
		}
	})
}
