package ops_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestFailuresAreGroupedByError: errors that differ in numbers and quoted texts alone are one group,
// and the statuses of HTTP are told apart. What never failed, or runs, is left out.
func TestFailuresAreGroupedByError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("webhook", 5, 2, time.Hour)
		b.add("webhook", 3, 4, time.Minute)
		b.add("fresh", 2, 0, 0)
		set := func(kind, text, and string) {
			b.db.MustExec(b.db.Rebind("update falldue_tasks set last_error = "+text+and+" where kind = ?"), kind)
		}
		number := "concat('order ', id, ' of \"shop ', id, '\": 503 Service Unavailable')"
		if engine == testdb.SQLite {
			number = "'order ' || id || ' of \"shop ' || id || '\": 503 Service Unavailable'"
		}
		set("webhook", number, "")
		b.add("mail", 2, 1, time.Second)
		set("mail", "'relay: 451 try later'", "")
		b.add("mail", 1, 1, time.Second)
		b.db.MustExec("update falldue_tasks set state = 'dead', last_error = 'relay: 550 no such user' where kind = 'mail' and last_error is null")

		f, err := b.ops(nil).Failures(t.Context())
		if err != nil || f.Tasks != 11 || f.More || f.At.IsZero() {
			t.Fatalf("%d failures were read, more %v, at %v, error %v", f.Tasks, f.More, f.At, err)
		}
		var got []string
		for _, g := range f.Groups {
			got = append(got, fmt.Sprintf("%s %s %d %d", g.Kind, g.Error, g.Waiting, g.Dead))
		}
		want := []string{"webhook order … of …: 503 Service Unavailable 8 0", "mail relay: 451 try later 2 0", "mail relay: 550 no such user 0 1"}
		if !slices.Equal(got, want) {
			t.Errorf("the groups are %q, want %q", got, want)
		}
		g := f.Groups[0]
		if first, last := f.At.Sub(g.First), f.At.Sub(g.Last); first < time.Hour || last < time.Minute || last >= time.Hour {
			t.Errorf("the first failure was %v ago, the last %v", first, last)
		}
		// The most tried tasks failed first when the others failed last, and those fail again now.
		b.db.MustExec("insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error) select a.id, 1, 1, 'retried', 'w', min(b.updated_at), 0, max(a.last_error) from falldue_tasks a, falldue_tasks b where a.attempts = 4 and b.attempts = 2 group by a.id")
		b.db.MustExec("update falldue_tasks set updated_at = created_at where attempts = 2")
		first := g.First
		if again, err := b.ops(nil).Failures(t.Context()); err != nil || !again.Groups[0].First.Equal(first) {
			t.Errorf("the first failure was at %v, want %v; error %v", again.Groups[0].First, first, err)
		}
		if task, err := b.queue.Task(t.Context(), g.Newest); err != nil || task.Attempts != 4 {
			t.Errorf("the newest task is %+v, error %v", task, err)
		}
	})
}

// TestNewestTasksFirst: pages from the newest task down meet each task once, also with a filter
// that no index has.
func TestNewestTasksFirst(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("a", 7, 0, 0)
		b.add("b", 2, 0, 0)
		b.add("a", 4, 0, 0)
		for _, f := range []ops.Filter{{Kind: "a"}, {Kind: "a", Match: "null"}, {Kind: "a", Phase: falldue.PhaseDue}} {
			var ids []int64
			list := ops.ListOptions{Limit: 3, Newest: true}
			for more := true; more; {
				page, err := b.ops(nil).Tasks(t.Context(), f, list)
				if err != nil {
					t.Fatal(err)
				}
				for _, task := range page.Tasks {
					ids = append(ids, task.ID)
				}
				more, list.After = page.More, page.Next
			}
			if down := slices.IsSortedFunc(ids, func(x, y int64) int { return int(y - x) }); len(ids) != 11 || !down {
				t.Errorf("pages of %+v have the tasks %v", f, ids)
			}
		}
	})
}
