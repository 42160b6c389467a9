package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// runningHandlers are handlers.
type runningHandlers map[string]int

func (r runningHandlers) Running() map[string]int { return r }

// fakeAnnounceTable is an announceTable.
type fakeAnnounceTable struct {
	put  func(context.Context, store.Worker, store.Recent, store.WorkerInfo) error
	see  func(context.Context, store.Worker, store.Recent) (bool, error)
	drop func()
}

func (f fakeAnnounceTable) Announce(ctx context.Context, w store.Worker, recent store.Recent, info store.WorkerInfo) error {
	return f.put(ctx, w, recent, info)
}

func (f fakeAnnounceTable) SeeWorker(ctx context.Context, w store.Worker, recent store.Recent) (bool, error) {
	return f.see(ctx, w, recent)
}

func (f fakeAnnounceTable) DropWorker(context.Context, string) error {
	f.drop()
	return nil
}

// TestWorkersAnnounceThemselvesCheaply: a worker announces itself every 15 seconds with one statement. The
// part that seldom changes is sent once, and when the table lacks it. A failure that lasts is logged once and
// reported each time, and the worker continues.
func TestWorkersAnnounceThemselvesCheaply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var mu sync.Mutex // guards the variables that the worker and the test write
		var puts, sees, drops, troubles int
		var last store.WorkerInfo
		var stored bool
		var failure error
		table := fakeAnnounceTable{put: func(_ context.Context, w store.Worker, recent store.Recent, info store.WorkerInfo) error {
			mu.Lock()
			defer mu.Unlock()
			puts++
			last, stored = info, failure == nil
			if w.ID != "me/1" || w.Running != 7 || w.Done != 3 || recent.Running["default"] != 4 || recent.Running["images"] != 3 {
				t.Errorf("announced as %+v, %+v", w, recent)
			}
			return failure
		}, see: func(context.Context, store.Worker, store.Recent) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			sees++
			return stored, failure
		}, drop: func() { drops++ }}
		logger := retry.Sparse(slog.New(slog.NewTextHandler(&log, nil)), func(error) dialect.Class { return dialect.Other }, func(role, _ string, _ error) {
			mu.Lock()
			defer mu.Unlock()
			if role != "announcer" {
				t.Errorf("the role %q fails", role)
			}
			troubles++
		})
		a := NewAnnouncer("me/1", store.WorkerInfo{Host: "here"}, runningHandlers{"default": 4, "images": 3}, lease.NewSet(), new(run.EndedRuns), control.NewHealthReport(), table, logger)
		a.ended.Kinds = map[string]store.Runs{"k": {Done: 3}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.Work(ctx) }()
		after := func(d time.Duration) {
			mu.Unlock()
			defer mu.Lock()
			time.Sleep(d)
			synctest.Wait()
		}
		mu.Lock()

		after(time.Hour)
		if puts != 1 || sees > 240 || sees < 220 || last.Host != "here" || last.Stopping {
			t.Errorf("in an hour %d announcements of all and %d others; the last is %+v", puts, sees, last)
		}
		stored = false // a person has emptied the table
		after(time.Minute)
		if puts != 2 {
			t.Errorf("announced %d times, want again after its row has gone", puts)
		}
		failure = errors.New("denied")
		after(time.Hour)
		failure = nil
		after(time.Minute)
		failure = errors.New("denied again")
		after(time.Hour)
		failure = nil
		after(time.Minute)
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("two failures of an hour each are logged %d times:\n%s", got, &log)
		}
		if troubles < 2*220 || troubles > 2*240 {
			t.Errorf("two failures of an hour each are %d troubles; want one each 15 seconds", troubles)
		}
		a.Stop()
		after(time.Second)
		if !last.Stopping || drops != 0 {
			t.Errorf("a worker that stops is announced as %+v, and removed %d times", last, drops)
		}
		mu.Unlock()
		cancel()
		<-ended
		if drops != 1 {
			t.Errorf("a worker that has ended is removed %d times", drops)
		}
	})
}

// TestWorkerThatStopsWhileItAnnouncesLeaves: the end of its context makes the announcement fail. The
// worker is removed nevertheless.
func TestWorkerThatStopsWhileItAnnouncesLeaves(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dropped := false
	table := fakeAnnounceTable{drop: func() { dropped = true }, put: func(ctx context.Context, _ store.Worker, _ store.Recent, _ store.WorkerInfo) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	a := NewAnnouncer("me/1", store.WorkerInfo{}, runningHandlers{}, lease.NewSet(), new(run.EndedRuns), control.NewHealthReport(), table, slog.New(slog.DiscardHandler))
	a.Work(ctx)
	if !dropped {
		t.Error("its row stays")
	}
}
