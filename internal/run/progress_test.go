package run

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// reportingRun returns a run of a task whose reports w writes.
func reportingRun(w *ProgressWriter, id, fence int64) *Run {
	c := &store.Claim{}
	c.ID, c.Fence = id, fence
	return &Run{Env: &Env{Reports: w}, ClaimResult: outcome.ClaimResult{Claim: c}, handler: &Handler{}}
}

// TestProgressIsWrittenOnceASecond: however much handlers report, a worker writes the
// last report of each, once a second.
func TestProgressIsWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes, last, fail := 0, map[int64]store.Progress{}, false
		var log strings.Builder
		w := NewProgressWriter("me", writesProgress(func(list []store.Progress) (map[int64]bool, error) {
			if writes++; fail {
				return nil, errors.New("no answer")
			}
			seen := map[int64]bool{}
			for _, p := range list {
				if last[p.TaskID] = p; seen[p.TaskID] {
					t.Errorf("task %d is written twice at once", p.TaskID)
				}
				seen[p.TaskID] = true
			}
			return seen, nil
		}), slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Work(ctx)
		synctest.Wait()
		a, again, b := reportingRun(w, 1, 1), reportingRun(w, 1, 2), reportingRun(w, 2, 1)
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
		if p, reported := b.lastProgress(); p != nil || !reported {
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

// TestTheLastReportOutlivesAWriteUnderWay: a report is part of the settlement even while it is
// being written, since that write stores nothing once the task is settled.
func TestTheLastReportOutlivesAWriteUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		w := NewProgressWriter("me", writesProgress(func(list []store.Progress) (map[int64]bool, error) {
			<-answer
			return map[int64]bool{list[0].TaskID: true}, nil
		}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Work(ctx)
		before, after := reportingRun(w, 1, 1), reportingRun(w, 2, 1)
		before.Progress(0.5, "half")
		synctest.Wait()
		if e, _ := before.Finish(nil, 0); e.Progress == nil || e.Progress.Message != "half" {
			t.Errorf("the settlement has %+v", e.Progress)
		}
		answer <- struct{}{}
		after.Progress(0.5, "half")
		answer <- struct{}{}
		synctest.Wait()
		if e, _ := after.Finish(nil, 0); e.Progress != nil || !e.HasProgress {
			t.Errorf("after the write the settlement has %+v, %v", e.Progress, e.HasProgress)
		}
	})
}

// TestAReportThatMeetsALockIsWrittenLater: while another transaction has locked the row of a task, as an
// extension of its lease does, its progress cannot be stored. The next write includes it.
func TestAReportThatMeetsALockIsWrittenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		var writes atomic.Int64
		locked.Store(true)
		w := NewProgressWriter("me", writesProgress(func(list []store.Progress) (map[int64]bool, error) {
			writes.Add(1)
			return map[int64]bool{list[0].TaskID: !locked.Load()}, nil
		}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Work(ctx)
		r, lost := reportingRun(w, 1, 1), reportingRun(w, 2, 1)
		r.Progress(0.5, "half")
		synctest.Wait()
		locked.Store(false)
		time.Sleep(time.Minute)
		if p, _ := r.lastProgress(); p != nil || writes.Load() != 2 {
			t.Errorf("after %d writes %+v is left, want 2 and none", writes.Load(), p)
		}
		locked.Store(true)
		lost.Lease.Lose()
		lost.Progress(0.5, "half")
		time.Sleep(time.Minute)
		if n := writes.Load(); n != 3 {
			t.Errorf("%d writes, want 3: that of a run that has lost its task is not repeated", n)
		}
	})
}

// TestARollbackOfDoneTxKeepsTheReport: the last report of a run is not lost with DoneTx.
func TestARollbackOfDoneTxKeepsTheReport(t *testing.T) {
	t.Parallel()
	w := NewProgressWriter("me", nil, nil) // which does not write
	r := reportingRun(w, 1, 1)
	r.Table = settlesTx(func(e *store.Settlement) (bool, error) {
		if e.Progress == nil {
			t.Error("DoneTx stores no report")
		}
		return false, errors.New("deadlock")
	})
	r.Progress(0.5, "half")
	if err := r.DoneTx(t.Context(), &sql.Tx{}); err == nil {
		t.Error("DoneTx has settled the task")
	}
	if e, _ := r.Finish(nil, 0); e.Progress == nil {
		t.Error("the settlement has no report")
	}
}
