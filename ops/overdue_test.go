package ops_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestOverdueKnowsThePolicies: those that workers announce, tasks' own, those for all kinds,
// and what is set. Only what has another policy that nobody knows counts as due after a day.
func TestOverdueKnowsThePolicies(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		own, ownSlow := backoff.Constant(20*time.Minute), backoff.Constant(40*time.Hour)
		stop := b.start(falldue.Config{Queues: map[string]falldue.QueueConfig{"elsewhere": {}}}, func(q *falldue.Queue) {
			handle(falldue.KindConfig{Policy: backoff.Constant(10 * time.Minute)}, succeed, "mail")(q)
			handle(falldue.KindConfig{Policy: backoff.Constant(30 * time.Hour)}, succeed, "invoice")(q)
		})
		defer stop()
		b.workers(b.ops(nil), "the worker", announced(1))
		b.add("mail", 5, 1, 30*time.Minute) // announced
		b.add("mail", 4, 1, 5*time.Minute)  // not due
		began := time.Now()
		b.add("mail", 3, 2, 2*time.Hour, falldue.EnqueueOptions{Policy: own})         // its own
		b.add("mail", 2, 2, 25*time.Hour, falldue.EnqueueOptions{Policy: ownSlow})    // not due
		b.add("invoice", 6, 1, 29*time.Hour)                                          // not due, and longer than a day
		b.add("report", 7, 1, 2*time.Hour)                                            // not known
		b.add("audit", 8, 1, 25*time.Hour)                                            // not known, for more than a day
		b.add("charge", 9, 1, 2*time.Hour, falldue.EnqueueOptions{Key: "customer:7"}) // given
		check := func(what string, i *ops.Ops, want map[string]int) {
			t.Helper()
			list, err := i.Overdue(t.Context(), 0)
			got := map[string]int{}
			for _, o := range list {
				got[o.Kind] += o.Tasks
			}
			same := len(got) == len(want) && len(list) == len(want)
			for kind, n := range want {
				same = same && got[kind] == n
			}
			if err != nil || !same {
				t.Errorf("%s: overdue are %+v, error %v; want %v", what, list, err, want)
			}
			if len(list) > 0 && list[len(list)-1].Kind == "mail" && !b.near(list[len(list)-1].DueSince, began.Add(-100*time.Minute)) {
				t.Errorf("%s: the first mail is due since %v", what, list[len(list)-1].DueSince)
			}
		}
		charge := map[string]backoff.Policy{"charge": backoff.Constant(time.Hour)}
		check("a policy that is given", b.ops(charge), map[string]int{"audit": 8, "charge": 9, "mail": 8})
		check("one for all kinds", b.ops(map[string]backoff.Policy{"": backoff.Constant(27 * time.Hour)}), map[string]int{"invoice": 6, "mail": 3})
		set := func(s falldue.Subject, o backoff.Override, options ...ops.OverrideOptions) {
			t.Helper()
			if err := ops.New(b.queue).SetPolicy(t.Context(), s, o, options...); err != nil {
				t.Fatal(err)
			}
		}
		set(falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{Until: time.Now().Add(time.Hour)})
		set(falldue.Subject{Kind: "invoice"}, override(t, "1h"))
		check("what is set", b.ops(charge), map[string]int{"audit": 8, "charge": 9, "invoice": 6, "mail": 3})
		if err := b.queue.Pause(t.Context(), falldue.Subject{Key: "customer:7"}); err != nil {
			t.Fatal(err)
		}
		check("what is paused", b.ops(charge), map[string]int{"audit": 8, "invoice": 6, "mail": 3})
	})
}
