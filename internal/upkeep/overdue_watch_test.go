package upkeep

import (
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
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
)

// noPauses are pauses.
type noPauses struct{}

func (noPauses) Paused(string, store.Lane) bool { return false }

// TestLookoutWarnsOfTasksThatNobodyTakes: a worker warns once a minute of overdue tasks of
// kinds that it does not handle, unless other workers take some of these tasks.
func TestLookoutWarnsOfTasksThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 100)
		var looks int
		var away, broken, uncounted atomic.Bool
		handlers := map[string]*run.Handler{"mine": {Policy: control.Compile(backoff.Constant(time.Hour))}}
		l := &OverdueWatch{
			tables: overdueTables{
				queues: func() ([]string, error) {
					if away.Load() {
						return nil, errors.New("the database is away")
					}
					return []string{"broken", "default", "other"}, nil
				},
				heads: func(queue string) ([]store.Head, error) {
					looks++
					if queue == "broken" && broken.Load() {
						return nil, errors.New("this queue cannot be swept")
					} else if queue == "broken" {
						return nil, nil
					}
					taken := head("taken", 0, time.Hour)
					taken.Anchor += int64(looks) // its first task is another one each time
					return []store.Head{
						head("mine", 0, time.Hour), head("mine", 1, 90*time.Minute), head("nobody", 0, 2*time.Minute), head("nobody", 1, 26*time.Hour),
						head("fresh", 0, 30*time.Second), head("failed", 1, 23*time.Hour), taken, head("limited", 0, time.Hour),
					}, nil
				},
				count: func(at store.Lane, wait time.Duration, most int) (int, error) {
					if at.Kind == "nobody" && wait != overdue.After+time.Duration(at.Attempts)*overdue.UnknownDelay {
						t.Errorf("counts tasks of %v that have waited for %v", at, wait)
					}
					if uncounted.Load() {
						return 0, errors.New("these tasks cannot be counted")
					}
					return min(700, most), nil
				},
			},
			pauses:   noPauses{},
			handlers: handlers,
			works:    func(queue string) bool { return queue == "default" },
			events:   events{slog.New(slog.NewTextHandler(lineWriter(lines), nil))},
		}
		ctx, cancel := context.WithCancel(t.Context())
		go l.Work(ctx)
		synctest.Wait()
		if list := received(lines); len(list) > 0 {
			t.Errorf("it warns before a minute is over: %q", list)
		}
		time.Sleep(overdueEvery + overdueEvery/10)
		synctest.Wait()
		want := []string{
			"queue=default kind=nobody tasks=1000 counted_up_to=1000 due_since=2029-12-31T22:00:00.000Z\n",
			"queue=other kind=mine tasks=1000 counted_up_to=1000 due_since=2029-12-31T23:00:00.000Z\n",
			"queue=other kind=nobody tasks=1000 counted_up_to=1000 due_since=2029-12-31T22:00:00.000Z\n",
		}
		got := received(lines)
		for i, line := range got {
			if i >= len(want) || !strings.Contains(line, "no worker has taken") || !strings.HasSuffix(line, want[i]) {
				t.Errorf("it warns: %s", line)
			}
		}
		if len(got) != len(want) {
			t.Errorf("it warns in %d lines, want %d", len(got), len(want))
		}
		time.Sleep(10 * overdueEvery)
		synctest.Wait()
		if n := len(received(lines)) / len(want); n < 8 || n > 10 {
			t.Errorf("it warns %d times in ten minutes", n)
		}
		broken.Store(true)
		time.Sleep(overdueEvery + overdueEvery/10)
		synctest.Wait()
		if list := strings.Join(received(lines), ""); !strings.Contains(list, "this queue cannot be swept") || strings.Count(list, "no worker has taken") < len(want) {
			t.Errorf("a queue that cannot be swept keeps it from the others: %s", list)
		}
		uncounted.Store(true)
		time.Sleep(overdueEvery + overdueEvery/10)
		synctest.Wait()
		if list := strings.Join(received(lines), ""); !strings.Contains(list, "these tasks cannot be counted") || strings.Contains(list, "no worker has taken") {
			t.Errorf("it warns of tasks that it has not counted: %s", list)
		}
		away.Store(true)
		time.Sleep(2 * overdueEvery)
		cancel()
		synctest.Wait()
		if list := received(lines); len(list) == 0 || !strings.Contains(list[0], "the database is away") {
			t.Errorf("it does not report that it cannot search: %q", list)
		}
	})
}

// overdueTables are tables in which an overdue watch finds the results of functions.
type overdueTables struct {
	queues func() ([]string, error)
	heads  func(queue string) ([]store.Head, error)
	count  func(at store.Lane, wait time.Duration, most int) (int, error)
}

// LiveWorkers returns a worker with a limit.
func (o overdueTables) LiveWorkers(context.Context) ([]store.WorkerInfo, error) {
	limit := store.Limit{Text: "AtMost(1)", Name: "kind limited running", Form: store.Running, Most: 1}
	return []store.WorkerInfo{{
		Queues: map[string]store.WorkerQueue{"default": {}, "other": {}},
		Kinds:  map[string]store.WorkerKind{"limited": {Limits: []store.Limit{limit}}},
	}}, nil
}

// LimitStates returns limits without room.
func (o overdueTables) LimitStates(_ context.Context, limits []store.Limit) (list []store.LimitState, err error) {
	for _, l := range limits {
		list = append(list, store.LimitState{Limit: l})
	}
	return list, nil
}

func (o overdueTables) Queues(context.Context) ([]string, error) { return o.queues() }
func (o overdueTables) Heads(_ context.Context, queues []string) (_ map[string][]store.Head, failed error) {
	found := map[string][]store.Head{}
	for _, queue := range queues {
		heads, err := o.heads(queue)
		found[queue], failed = heads, errors.Join(failed, err)
	}
	return found, failed
}

func (o overdueTables) CountSince(_ context.Context, lanes []store.LaneSince) (list []int, err error) {
	for _, l := range lanes {
		n, err := o.count(l.Lane, time.Duration(l.Wait)*time.Microsecond, l.Most)
		if list = append(list, n); err != nil {
			return list, err
		}
	}
	return list, nil
}

// lineWriter sends each line that a logger writes.
type lineWriter chan<- string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// received returns the lines that c holds.
func received(c <-chan string) (list []string) {
	for {
		select {
		case s := <-c:
			list = append(list, s)
		default:
			return list
		}
	}
}
