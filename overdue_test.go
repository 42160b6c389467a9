package falldue

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/store"
)

// TestLookoutWarnsOfTasksThatNobodyTakes: a worker warns once a minute of overdue tasks of
// kinds that it does not handle, unless other workers take some of them.
func TestLookoutWarnsOfTasksThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		looks, failure := 0, error(nil)
		handlers := map[string]*handler{"mine": {rule: newRule(backoff.Constant(time.Hour))}}
		l := &lookout{
			overdueFinder: overdueFinder{
				handlers: handlers,
				queues:   func(context.Context) ([]string, error) { return []string{"default", "other"}, failure },
				heads: func(_ context.Context, queue string) ([]store.Head, error) {
					looks++
					taken := head("taken", 0, time.Hour)
					taken.Anchor += int64(looks) // its first task is another one each time
					return []store.Head{
						head("mine", 0, time.Hour), head("mine", 1, 90*time.Minute), head("nobody", 0, 2*time.Minute), head("nobody", 1, 26*time.Hour),
						head("fresh", 0, 30*time.Second), head("failed", 1, 23*time.Hour), taken,
					}, nil
				},
				count: func(_ context.Context, _ string, at store.Lane, wait time.Duration, most int) (int, error) {
					if at.Kind == "nobody" && wait != overdueAfter+time.Duration(at.Attempts)*unknownDelay {
						t.Errorf("counts tasks of %v that have waited for %v", at, wait)
					}
					return min(700, most), nil
				},
			},
			handled: func(queue, kind string) bool { return queue == "default" && kind == "mine" },
			events:  events{slog.New(slog.NewTextHandler(&log, nil))},
		}
		ctx, cancel := context.WithCancel(t.Context())
		go l.work(ctx)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("it warns before a worker had a minute: %s", &log)
		}
		time.Sleep(overdueEvery + overdueEvery/10)
		synctest.Wait()
		want := []string{
			"queue=default kind=nobody tasks=1000 counted_up_to=1000 due_since=2029-12-31T22:00:00.000Z",
			"queue=other kind=mine tasks=1000 counted_up_to=1000 due_since=2029-12-31T23:00:00.000Z",
			"queue=other kind=nobody tasks=1000 counted_up_to=1000 due_since=2029-12-31T22:00:00.000Z",
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, line := range lines {
			if i >= len(want) || !strings.Contains(line, "no worker takes") || !strings.HasSuffix(line, want[i]) {
				t.Errorf("it warns:\n%s", line)
			}
		}
		if len(lines) != len(want) {
			t.Errorf("%d lines, want %d", len(lines), len(want))
		}
		log.Reset()
		time.Sleep(10 * overdueEvery)
		synctest.Wait()
		if n := strings.Count(log.String(), "queue=default kind=nobody"); n < 8 || n > 10 {
			t.Errorf("it warns %d times in ten minutes", n)
		}
		failure = errors.New("the database is away")
		time.Sleep(2 * overdueEvery)
		cancel()
		synctest.Wait()
		if !strings.Contains(log.String(), "the database is away") {
			t.Errorf("it does not report that it cannot look: %s", &log)
		}
	})
}
