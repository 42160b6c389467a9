package ops_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestQuickPages: a page is exact if the index has few candidates. Otherwise it has the matching tasks among the ids that
// it reaches, the first candidates of the index, and the tasks in heartbeats of workers. Such a page is bounded.
func TestQuickPages(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		var all []falldue.Receipt
		for i := range 200 {
			kind, key := "mail", falldue.KeyOf("tenant", fmt.Sprint(i%20), "order", fmt.Sprint(i))
			if i == 100 {
				kind = "rare"
			}
			r, err := falldue.NewKind[int](kind, falldue.KindConfig{}).Enqueue(t.Context(), b.queue, i, falldue.EnqueueOptions{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		slices.SortFunc(all, byID)
		set := func(set string, n int) {
			t.Helper()
			if _, err := b.db.ExecContext(t.Context(), fmt.Sprintf("update falldue_tasks set %s where id = %d", set, all[n].ID)); err != nil {
				t.Fatal(err)
			}
		}
		server, err := dialect.Probe(t.Context(), b.db)
		if err != nil {
			t.Fatal(err)
		}
		now := server.Clock().Now
		later := server.Clock().Shift(now, "3600000000")
		set("claimed_by = 'w', attempts = 1, updated_at = "+later, 149)
		set("claimed_by = 'w', attempts = 1, updated_at = "+later, 199)
		for n := range 30 {
			set("state = 'dead'", 160+n)
		}
		b.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, recent) values ('w', " + now + ", " + now + `, '{}', '{"longest":[` +
			fmt.Sprintf(`{"id":%d,"kind":"mail","queue":"default"},{"id":%d,"kind":"mail","queue":"default"}]}')`, all[199].ID, all[7].ID))
		o := ops.New(b.queue)
		page := func(f ops.Filter, list ops.ListOptions, looked, first int) (numbers []int, p ops.Page) {
			t.Helper()
			p, err := o.QuickTasks(t.Context(), f, list, looked, first)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range p.Tasks {
				numbers = append(numbers, slices.IndexFunc(all, func(r falldue.Receipt) bool { return r.ID == task.ID }))
			}
			return numbers, p
		}
		tenant := ops.Filter{Key: "tenant=7"}
		for _, c := range []struct {
			filter        ops.Filter
			list          ops.ListOptions
			looked, first int
			want          []int
			more, bounded bool
		}{
			{ops.Filter{Phase: falldue.PhaseRunning}, ops.ListOptions{}, 200, 10, []int{149, 199}, false, false},
			{ops.Filter{Phase: falldue.PhaseRunning}, ops.ListOptions{Newest: true, Limit: 1}, 200, 10, []int{199}, true, false},
			{ops.Filter{Phase: falldue.PhaseRunning}, ops.ListOptions{}, 20, 10, []int{199}, true, true},                             // a heartbeat has it
			{ops.Filter{Phase: falldue.PhaseRunning, Kind: "rare"}, ops.ListOptions{}, 20, 10, nil, true, true},                      // and its kind
			{ops.Filter{Phase: falldue.PhaseRunning}, ops.ListOptions{Newest: true}, 20, 10, []int{199}, true, true},                 // it is among the newest
			{ops.Filter{Phase: falldue.PhaseRunning, Queue: "default"}, ops.ListOptions{}, 20, 160, []int{149, 199}, true, true},     // each by its way
			{ops.Filter{State: falldue.StateDead}, ops.ListOptions{Limit: 2}, 30, 10, []int{160, 161}, true, false},                  // all are known
			{ops.Filter{State: falldue.StateDead, Kind: "rare"}, ops.ListOptions{}, 30, 10, nil, false, false},                       // as is that there is none
			{ops.Filter{State: falldue.StateDead, Kind: "rare"}, ops.ListOptions{}, 20, 10, nil, true, true},                         // not here
			{ops.Filter{Kind: "rare"}, ops.ListOptions{}, 200, 10, nil, true, true},                                                  // no index has it
			{ops.Filter{Kind: "rare"}, ops.ListOptions{}, 200, 101, []int{100}, true, true},                                          //
			{ops.Filter{Kind: "mail"}, ops.ListOptions{Limit: 2}, 200, 10, []int{0, 1}, true, false},                                 //
			{ops.Filter{Queue: "none"}, ops.ListOptions{}, 1, 10, nil, false, false},                                                 //
			{ops.Filter{Key: "tenant=7/order=187"}, ops.ListOptions{}, 20, 10, []int{187}, true, true},                               // the key begins with it
			{ops.Filter{Key: "order=187"}, ops.ListOptions{}, 20, 10, nil, true, true},                                               // the key ends with it
			{tenant, ops.ListOptions{Newest: true}, 20, 20, []int{187, 167, 147, 127, 107, 87, 67, 47, 27, 7}, true, true},           //
			{tenant, ops.ListOptions{After: all[150].ID, Newest: true}, 20, 20, []int{147, 127, 107, 87, 67, 47, 27, 7}, true, true}, //
			{tenant, ops.ListOptions{After: all[150].ID}, 20, 50, []int{167, 187}, false, false},                                     // to the end
			{ops.Filter{Match: "7"}, ops.ListOptions{}, 20, 20, []int{7, 17}, true, true},                                            //
			{ops.Filter{Match: "7"}, ops.ListOptions{Limit: 1}, 20, 20, []int{7}, true, false},                                       //
			{ops.Filter{Phase: falldue.PhaseDue}, ops.ListOptions{Limit: 3}, 200, 10, []int{0, 1, 2}, true, false},                   //
			{ops.Filter{Phase: falldue.PhaseScheduled}, ops.ListOptions{}, 200, 10, nil, false, false},                               //
			{ops.Filter{Phase: falldue.PhaseSnoozed}, ops.ListOptions{}, 1, 10, nil, false, false},                                   // no task is snoozed
			{ops.Filter{Phase: falldue.PhaseDead}, ops.ListOptions{Limit: 40}, 30, 10, []int{160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189}, false, false},
		} {
			got, p := page(c.filter, c.list, c.looked, c.first)
			if !slices.Equal(got, c.want) || p.More != c.more || p.Bounded != c.bounded {
				t.Errorf("%+v, %+v: tasks %v, more %v, bounded %v; want %v, %v, %v", c.filter, c.list, got, p.More, p.Bounded, c.want, c.more, c.bounded)
			}
		}
		// Without candidates from the index, pages leave out nothing.
		for _, f := range []ops.Filter{{Kind: "mail"}, {Kind: "rare"}, {Match: "7"}, {Key: "order=187"}} {
			want, err := listed(o.Tasks(t.Context(), f, ops.ListOptions{Limit: 1000, Newest: true}))
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			list, before := ops.ListOptions{Newest: true, Limit: 7}, 200
			for more := true; more; {
				_, p := page(f, list, 20, 20)
				for _, task := range p.Tasks {
					got = append(got, task.ID)
				}
				n := slices.IndexFunc(all, func(r falldue.Receipt) bool { return r.ID == p.Next })
				if before-n > 20 {
					t.Errorf("%+v: a page looks at the tasks from %d to %d", f, before, n)
				}
				more, list.After, before = p.More, p.Next, n
			}
			if !slices.EqualFunc(got, want, func(id int64, task falldue.TaskInfo) bool { return id == task.ID }) {
				t.Errorf("%+v: pages have the tasks %v of %d", f, got, len(want))
			}
		}
	})
}
