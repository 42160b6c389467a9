package ops_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestPagesOfStatesAndKeys compares pages of a state and of a key with all tasks: few that the index finds, and more
// than it is asked for.
func TestPagesOfStatesAndKeys(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		o := ops.New(b.queue)
		for i, kind := range []string{"mail", "charge"} {
			kind := falldue.NewKind[int](kind, falldue.KindConfig{Queue: fmt.Sprint("queue", i)})
			for j := range 60 {
				if _, err := kind.Enqueue(t.Context(), b.queue, j, falldue.EnqueueOptions{Key: []string{"ab", "a", "a!", ""}[j%4]}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := b.db.ExecContext(t.Context(), "update falldue_tasks set state = 'dead' where id % 5 = 0"); err != nil {
			t.Fatal(err)
		}
		all, err := listed(o.Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 1000}))
		if err != nil || len(all) != 120 {
			t.Fatalf("%d tasks, error %v", len(all), err)
		}
		for _, f := range []ops.Filter{{State: falldue.StateDead}, {State: falldue.StateOpen}, {State: falldue.StateDone}, {Key: "a"}, {Key: "ab"}, {Key: "no"}, {Key: "a", State: falldue.StateDead, Queue: "queue1"}} {
			want := []int64{}
			for _, task := range all {
				if (f.State == "" || task.State == f.State) && (f.Key == "" || task.Key == f.Key) && (f.Queue == "" || task.Queue == f.Queue) {
					want = append(want, task.ID)
				}
			}
			for _, limit := range []int{1, 7, 100} {
				for _, newest := range []bool{false, true} {
					got, list := []int64{}, ops.ListOptions{Limit: limit, Newest: newest}
					for more := true; more; {
						p, err := o.Tasks(t.Context(), f, list)
						if err != nil {
							t.Fatal(err)
						}
						for _, task := range p.Tasks {
							got = append(got, task.ID)
						}
						more, list.After = p.More, p.Next
					}
					slices.SortFunc(want, func(x, y int64) int {
						if newest {
							x, y = y, x
						}
						return cmp.Compare(x, y)
					})
					if !slices.Equal(got, want) {
						t.Errorf("%+v in pages of %d, newest %v: tasks %v, want %v", f, limit, newest, got, want)
					}
				}
			}
		}
	})
}
