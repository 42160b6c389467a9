package falldue

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// TestWorkersAnnounceThemselvesCheaply: every 15 seconds by one statement, with what seldom
// changes once and when the table lacks it; a failure is logged once, and ends nothing.
func TestWorkersAnnounceThemselvesCheaply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var mu sync.Mutex // for what the worker and the test write
		var puts, sees, drops int
		var last store.WorkerInfo
		var stored bool
		var failure error
		a := newAnnouncer("me/1", store.WorkerInfo{Host: "here"}, func() map[string]int { return map[string]int{"default": 4, "images": 3} }, nil, events{slog.New(slog.NewTextHandler(&log, nil))})
		a.put = func(_ context.Context, w store.Worker, recent store.Recent, info store.WorkerInfo) error {
			mu.Lock()
			defer mu.Unlock()
			puts++
			last, stored = info, failure == nil
			if w.ID != "me/1" || w.Running != 7 || w.Done != 3 || recent.Running["default"] != 4 || recent.Running["images"] != 3 {
				t.Errorf("announced as %+v, %+v", w, recent)
			}
			return failure
		}
		a.see = func(context.Context, store.Worker, store.Recent) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			sees++
			return stored, failure
		}
		a.drop = func(context.Context, string) error { drops++; return nil }
		a.ended.kinds = map[string]store.Runs{"k": {Done: 3}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.work(ctx) }()
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
		stored = false // somebody has emptied the table
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
		a.stop()
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

// TestEndedRunsAreCounted: those that succeeded, also by DoneTx, and those that failed.
func TestEndedRunsAreCounted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := New(db, Config{PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := NewKind[string]("k", KindConfig{})
		Handle(q, kind, func(ctx context.Context, task Task[string]) error {
			switch task.Args {
			case "fails":
				return errors.New("no")
			case "dies":
				return Discard(errors.New("never"))
			case "snoozes":
				return Snooze(time.Hour)
			case "in a transaction":
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := task.DoneTx(ctx, tx); err != nil {
					return err
				}
				return tx.Commit()
			}
			return nil
		})
		if _, err := kind.EnqueueMany(t.Context(), q, []string{"fails", "dies", "snoozes", "in a transaction", "succeeds", "succeeds"}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		var w *worker
		for ended := false; !ended; {
			counts, err := q.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var open, others int64
			for _, c := range counts {
				if c.State == Open {
					open += c.Tasks
				} else {
					others += c.Tasks
				}
			}
			ended = open == 1 && others == 2 // it waits for its retry, and the others are dead and snoozed
			if q.mu.Lock(); q.worker != nil {
				w = q.worker
			}
			q.mu.Unlock()
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, want := w.announcer.ended.kinds["k"], (store.Runs{Done: 3, Failed: 2}); got != want || len(w.announcer.ended.kinds) != 1 {
			t.Errorf("the runs that have ended are %+v, want %+v of kind k", w.announcer.ended.kinds, want)
		}
	})
}

func TestReleases(t *testing.T) {
	t.Parallel()
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		build debug.BuildInfo
		want  string
	}{
		{debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: vcs}, "v1.2.3"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs}, "0123456789ab+dirty"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs[:1]}, "0123456789ab"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "(devel)"},
		{debug.BuildInfo{}, ""},
	} {
		if got := releaseOf(&c.build); got != c.want {
			t.Errorf("the release of %+v is %q, want %q", c.build, got, c.want)
		}
	}
	deps := debug.BuildInfo{Main: debug.Module{Path: "shop"}, Deps: []*debug.Module{{Path: "other", Version: "v9.0.0"}, {Path: "github.com/falldue/falldue", Version: "v1.4.0"}}}
	if got := libraryOf(&deps); got != "v1.4.0" {
		t.Errorf("the version of falldue is %q", got)
	}
}

// TestWorkerThatStopsWhileItAnnouncesLeaves: its context ends the announcement, which then
// fails. The worker is removed nevertheless.
func TestWorkerThatStopsWhileItAnnouncesLeaves(t *testing.T) {
	t.Parallel()
	a := newAnnouncer("me/1", store.WorkerInfo{}, func() map[string]int { return nil }, nil, events{slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	a.put = func(ctx context.Context, _ store.Worker, _ store.Recent, _ store.WorkerInfo) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	dropped := false
	a.drop = func(context.Context, string) error { dropped = true; return nil }
	a.work(ctx)
	if !dropped {
		t.Error("its row stays")
	}
}
