package claim

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// TestNoticesCauseFewStatements: however many notices come, an idle worker sends no
// statement for those of queues that it does not work on, and for its own few.
func TestNoticesCauseFewStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		notice         string
		every          time.Duration
		claims, sweeps int // the most in two seconds
	}{
		{"mails", time.Millisecond, 0, 1}, // the first sweep
		{"mails mine2 min", time.Millisecond, 0, 1},
		{"mine", time.Millisecond, 401, 101},
		{"mails mine", time.Millisecond, 401, 101},
		{"", time.Millisecond, 401, 101},
		{"mine", time.Second, 2, 3}, // each at once
	} {
		synctest.Test(t, func(t *testing.T) {
			claims, sweeps, waited := 0, 0, time.Duration(0)
			var noticed atomic.Value // a time
			noticed.Store(time.Now())
			p := newTestPoller(PollerConfig{
				Queue: "mine", Budget: run.NewBudget(1, 0), Log: slog.New(slog.DiscardHandler),
				Handlers: map[string]*run.Handler{"k": {Kind: "k", Queue: "mine"}}, OneStatement: true,
				Gates: Gates{handledKinds{"k": {Policy: control.Compile(backoff.Zizq())}}},
				Table: fakeTable{claim: func(store.ClaimParams) ([]*store.Claim, error) {
					claims++
					last, _ := noticed.Load().(time.Time)
					waited = max(waited, time.Since(last))
					return nil, nil
				}},
				Dispatcher: noDispatcher{}, AscendingIDs: true, PollInterval: time.Hour,
			}, fakeFinder{find: func() ([]store.Head, error) { sweeps++; return nil, nil }})
			l := &Listener{pollers: Pollers{"mine": p}, listen: func(ctx context.Context, _ string, wake func(string)) error {
				for retry.Pause(ctx, c.every) == nil {
					noticed.Store(time.Now())
					wake(c.notice)
				}
				return nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
			defer cancel()
			go l.Work(ctx)
			p.work(ctx)
			synctest.Wait()
			if claims > c.claims || claims < c.claims/2 || sweeps > c.sweeps || sweeps < c.sweeps/2 {
				t.Errorf("notices for %q each %v: %d claims and %d sweeps in 2 s", c.notice, c.every, claims, sweeps)
			}
			if waited > requestPause {
				t.Errorf("notices for %q each %v: a claim came %v after the last", c.notice, c.every, waited)
			}
		})
	}
}

// notifiedFunc is told of notices.
type notifiedFunc func(notice string)

func (f notifiedFunc) Notified(notice string) { f(notice) }

// TestListenerReportsEachChange: a failure is reported when it begins and each minute
// while it lasts, and so is its end.
func TestListenerReportsEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		begin, woken := time.Now(), 0
		l := &Listener{
			channel: "falldue_due", pollers: notifiedFunc(func(string) { woken++ }), events: events{slog.New(slog.NewTextHandler(&log, nil))},
			listen: func(ctx context.Context, _ string, wake func(string)) error {
				switch since := time.Since(begin); {
				case since < 150*time.Second:
					return errors.New("no such host")
				case since < 200*time.Second:
					wake("")
					wake("default")
					return errors.Join(retry.Pause(ctx, time.Minute), errors.New("connection reset"))
				}
				wake("")
				<-ctx.Done()
				return nil
			},
		}
		go func() { time.Sleep(time.Hour); cancel() }()
		l.Work(ctx)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(line, "level=")
			got = append(got, strings.TrimSpace(text))
		}
		const failed = `WARN msg="falldue: cannot listen; the worker polls for tasks of other processes" error=`
		const again = `INFO msg="falldue: listening again"`
		want := []string{failed + `"no such host"`, failed + `"no such host"`, failed + `"no such host"`, again, failed + `"connection reset"`, again}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if woken != 3 {
			t.Errorf("woken %d times", woken)
		}
	})
}
