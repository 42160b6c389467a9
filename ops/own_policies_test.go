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

// TestOwnPolicies: those that tasks which wait have of their own, with how many tasks have them
// in which queue and kind; not those that no task has any more.
func TestOwnPolicies(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		if list, err := i.OwnPolicies(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("of no task: %+v, error %v", list, err)
		}
		fast, slow := parse(t, "delay 30m"), parse(t, "delay 2h; attempts 5")
		last, over := parse(t, "delay 1s"), parse(t, "delay 3s")
		b.add("mail", 5, 1, time.Minute) // of its kind's policy
		b.add("mail", 3, 1, time.Minute, falldue.EnqueueOptions{Policy: fast})
		b.add("mail", 2, 2, time.Minute, falldue.EnqueueOptions{Policy: fast})
		b.enqueue("mail", falldue.EnqueueOptions{Policy: fast, Delay: 10 * time.Hour})
		b.enqueue("mail", falldue.EnqueueOptions{Policy: fast, Queue: "images"})
		b.enqueue("report", falldue.EnqueueOptions{Policy: slow, Key: "a"})
		b.enqueue("report", falldue.EnqueueOptions{Policy: slow, Key: "b"})
		gone := b.enqueue("mail", falldue.EnqueueOptions{Policy: over})
		if err := b.queue.Cancel(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		lost, err := b.queue.Task(t.Context(), b.enqueue("mail", falldue.EnqueueOptions{Policy: last}))
		if err != nil {
			t.Fatal(err)
		}
		b.db.MustExec("delete from falldue_policies where policy = 'delay 1s'")

		list, err := i.OwnPolicies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range list {
			text := o.Text
			if o.Err != nil && o.Key == lost.Policy {
				text = "lost"
			}
			got = append(got, fmt.Sprintf("%s: %d of %s in %s, %d lanes, %v", text, o.Tasks, o.Kind, o.Queue, o.Lanes, o.More))
		}
		slices.Sort(got)
		want := []string{
			"delay 2h; attempts 5: 2 of report in default, 2 lanes, false", "delay 30m: 1 of mail in images, 1 lanes, false",
			"delay 30m: 6 of mail in default, 3 lanes, false", "lost: 1 of mail in default, 1 lanes, false",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		sorted := slices.IsSortedFunc(list, func(a, b ops.OwnPolicy) int {
			return slices.Compare([]string{a.Key, a.Queue, a.Kind}, []string{b.Key, b.Queue, b.Kind})
		})
		if !sorted {
			t.Errorf("the list is not sorted: %+v", list)
		}
	})
}
