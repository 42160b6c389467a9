package ops_test

import (
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestLimitsOfAMisspelledPart: a limit names a part that no key has. The worker announces it, doctor and why name it,
// until a task has the part.
func TestLimitsOfAMisspelledPart(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		limits := []falldue.Limit{falldue.AtMost(2).PerKey("tenat"), falldue.AtMost(5), falldue.InOrder()}
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{Limits: limits}, succeed, "charge"))()
		waits := func(key string) (texts string) {
			t.Helper()
			w := b.why(i, b.enqueue("charge", falldue.EnqueueOptions{Key: key, Delay: 5 * 60 * 60 * 1e9}))
			for _, c := range w.Conditions {
				if c, ok := c.(ops.WhyNoLimit); ok {
					texts += c.Describe(w.Task) + "\n"
					if !c.Holds() || c.Name() != "limit" {
						t.Errorf("%+v", c)
					}
				}
			}
			return texts
		}
		for range 10 {
			b.enqueue("charge", falldue.EnqueueOptions{Key: "tenant=4"})
		}
		const text = `AtMost(2).PerKey("tenat")`
		list := b.workers(i, "the limit that has no effect", func(list []ops.Worker) bool {
			return len(list) == 1 && list[0].UnusedLimits["kind charge"] == text
		})
		if f := b.findings(i)["workers"]; !mentions(f, text+" of kind charge has no effect on "+list[0].ID+":") {
			t.Errorf("workers: %+v", f)
		}
		if got, want := waits("tenant=4"), text+" of kind charge does not count this task: the task's key tenant=4 has no part tenat\n"; got != want {
			t.Errorf("why says %q, want %q", got, want)
		}
		if got, want := waits(""), text+" of kind charge does not count this task: the task has no key\nInOrder() of kind charge does not count this task: the task has no key\n"; got != want {
			t.Errorf("why says %q, want %q", got, want)
		}
		if got := waits("tenat=4"); got != "" {
			t.Errorf("why says %q", got)
		}
		b.enqueue("charge", falldue.EnqueueOptions{Key: "tenat=4"})
		b.workers(i, "the limit's effect", func(list []ops.Worker) bool { return len(list) == 1 && len(list[0].UnusedLimits) == 0 })
		for _, f := range b.findings(i)["workers"] {
			if strings.Contains(f.Text, "has no effect") {
				t.Errorf("workers: %+v", f)
			}
		}
	})
}
