package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// fakeWorkersTable is a workersTable.
type fakeWorkersTable func() (map[string]bool, error)

func (f fakeWorkersTable) AnnouncedKinds(context.Context) (map[string]bool, error) { return f() }

// TestTasksOfKindsOfOtherWorkersStay: a worker deletes finished tasks of a kind that it does not
// handle only after an hour in which no worker has handled the kind. It reads once in a round which workers do.
func TestTasksOfKindsOfOtherWorkersStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		handled, failure, asked, finished := map[string]bool{"theirs": true}, error(nil), 0, true
		cleaned := map[string]time.Time{}
		c := &Cleaner{
			queues: func() []string { return []string{"a", "b"} }, retentions: Retentions{run.Retention{Done: run.Forever, Dead: time.Second, Cancelled: time.Second}, map[string]*run.Handler{"ours": {Retention: run.Retention{Done: 0, Dead: time.Second, Cancelled: time.Second}}}},
			events: events{slog.New(slog.NewTextHandler(&log, nil))},
			orphans: orphanKinds{workers: fakeWorkersTable(func() (map[string]bool, error) {
				asked++
				return handled, failure
			})},
			table: fakeCleanTable{lanes: func(context.Context, []string, string) ([]store.Found, error) {
				if !finished {
					return foundHere(head("ours", 1, time.Hour), head("theirs", 1, 0)), nil
				}
				return foundHere(head("ours", 1, time.Hour), head("theirs", 1, time.Hour), head("nobody's", 1, time.Hour)), nil
			},
				clean: func(_ context.Context, p store.CleanParams) (int, int64, error) {
					cleaned[p.Lane.Kind] = time.Now()
					return 1, p.Since, nil
				}},
		}
		// after lets the cleaner work for a time, and returns the kinds of deleted tasks.
		after := func(d time.Duration) string {
			clear(cleaned)
			asked = 0
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			c.Work(ctx)
			var kinds []string
			for _, kind := range []string{"ours", "theirs", "nobody's"} {
				if !cleaned[kind].IsZero() {
					kinds = append(kinds, kind)
				}
			}
			return strings.Join(kinds, " ")
		}
		step := func(what string, d time.Duration, want string) {
			t.Helper()
			if got := after(d); got != want {
				t.Errorf("%s tasks of %q are deleted, want %q", what, got, want)
			}
		}
		step("before the hour is over", 59*time.Minute, "ours")
		if rounds := int(59 * time.Minute / time.Second); asked > rounds || asked < rounds*9/10 {
			t.Errorf("it asked %d times in %d rounds", asked, rounds)
		}
		step("when it is over", 2*time.Minute, "ours nobody's")
		step("in three hours", 3*time.Hour, "ours nobody's")

		delete(handled, "theirs") // a deploy: the other workers end, and others start
		step("during a deploy", 10*time.Minute, "ours nobody's")
		handled["theirs"] = true
		step("after it", 10*time.Minute, "ours nobody's")
		delete(handled, "theirs")
		step("within an hour of the last worker", 59*time.Minute, "ours nobody's")
		step("an hour after the last worker", 2*time.Minute, "ours theirs nobody's")

		handled, failure = nil, errors.New("permission denied")
		step("if nobody can be asked", 2*time.Minute, "ours")
		if !strings.Contains(log.String(), "cannot delete finished tasks") || !strings.Contains(log.String(), "permission denied") {
			t.Errorf("logged %q", log.String())
		}
		handled, failure = map[string]bool{}, nil
		step("within an hour of not knowing", 59*time.Minute, "ours")
		finished = false
		step("without such tasks", 2*time.Minute, "ours")
		if asked != 0 {
			t.Errorf("it asked %d times although it had nothing of others to delete", asked)
		}
	})
}
