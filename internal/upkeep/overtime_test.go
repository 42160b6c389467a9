package upkeep

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// overtimeFunc is an overtimeObserver.
type overtimeFunc func(r *run.Run, timeout time.Duration)

func (f overtimeFunc) Overtime(r *run.Run, timeout time.Duration) { f(r, timeout) }

// TestHandlersPastTheirTimeoutAreReported: two handlers keep running after their timeout. They are logged
// once a minute, passed to the hook once each, and announced until they return. A handler that returns
// within the grace is not reported.
func TestHandlersPastTheirTimeoutAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer // read after synctest.Wait
		health := control.NewHealthReport()
		announced := func() map[string]string {
			var info store.WorkerInfo
			health.AddTo(&info)
			return info.Overtime
		}
		var mutex sync.Mutex // the timers of two handlers fire together
		var late []int64
		o := NewOvertime(overtimeFunc(func(r *run.Run, timeout time.Duration) {
			if timeout != time.Second {
				t.Errorf("task %d has the timeout %v", r.Claim.ID, timeout)
			}
			mutex.Lock()
			defer mutex.Unlock()
			late = append(late, r.Claim.ID)
		}), health, slog.New(slog.NewTextHandler(&text, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); o.Work(ctx) }()
		begin := func(id int64) (returned func()) {
			c := &store.Claim{From: store.Lane{Kind: "k"}}
			c.ID = id
			return (&run.Run{Env: &run.Env{Timeouts: o}, ClaimResult: outcome.ClaimResult{Claim: c}}).Limit(time.Second)
		}
		quick, first, second := begin(1), begin(2), begin(3)
		time.Sleep(5 * time.Second)
		quick()
		time.Sleep(145 * time.Second)
		synctest.Wait()
		if lines := strings.Count(text.String(), "\n"); lines != 3 || !strings.Contains(text.String(), `level=WARN msg="falldue: handlers have not returned although their timeout has passed" kind=k count=2 timeout=1s late_by=1m10s tasks="[2 3]"`) {
			t.Errorf("the log has %d lines:\n%s", lines, text.String())
		}
		if len(late) != 2 {
			t.Errorf("the hook was called for %v", late)
		}
		if want := "2 handlers over the timeout of 1s, the first for 2m10s: 2 3"; announced()["k"] != want {
			t.Errorf("the worker announces %q, want %q", announced()["k"], want)
		}
		first()
		second()
		synctest.Wait()
		if len(announced()) != 0 {
			t.Errorf("the worker announces %v after they have returned", announced())
		}
		stop()
		<-ended
	})
}

// TestARunDoesNotEndWhileTheHookReadsIt: a handler returns while the hook is told that its timeout has expired. The end
// of the run, which changes the run, waits for the hook.
func TestARunDoesNotEndWhileTheHookReadsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		o := NewOvertime(overtimeFunc(func(*run.Run, time.Duration) { <-read }), control.NewHealthReport(), slog.New(slog.DiscardHandler))
		returned := o.Limit(&run.Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}}, time.Second)
		time.Sleep(time.Minute)
		ended := make(chan struct{})
		go func() { defer close(ended); returned() }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the run ends while the hook reads it")
		default:
		}
		close(read)
		<-ended
	})
}
