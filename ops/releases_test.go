package ops_test

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWhyOfTwoReleases: a task falls due by the policy of the worker that looks first.
func TestWhyOfTwoReleases(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Hour)}, succeed, "mail"))()
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{Policy: backoff.Constant(2 * time.Hour)}, succeed, "mail"))()
		b.workers(i, "both workers", announced(2))
		b.add("mail", 1, 1, 0, falldue.EnqueueOptions{Delay: time.Hour})
		w := b.why(i, 1)
		if c := onlyReason[ops.WhyDue](t, w); len(c.Rules) != 2 || c.Rules[0].Delay != time.Hour || c.Rules[1].Delay != 2*time.Hour || !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
			t.Errorf("%+v", c)
		}
		p, err := i.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"", "mail"} {
			if list := p.Releases(kind); len(list) != 1 || list[0].Kind != "mail" || len(list[0].Policies) != 2 {
				t.Errorf("the releases of kind %q are %+v", kind, list)
			}
		}
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{Until: w.Task.Now.Add(90 * time.Minute)}); err != nil {
			t.Fatal(err)
		}
		w = b.why(i, 1)
		if c := onlyReason[ops.WhyDue](t, w); len(c.Rules) != 2 || !b.near(c.Rules[0].At, w.Task.Now.Add(90*time.Minute)) || !b.near(c.Rules[1].At, w.Task.Now.Add(2*time.Hour)) || c.Rules[1].Delay != 2*time.Hour {
			t.Errorf("on hold: %+v", c)
		}
		if p, err = b.ops(map[string]backoff.Policy{"mail": backoff.Constant(time.Hour)}).Profile(t.Context()); err != nil || len(p.Releases("")) != 0 || len(p.Releases("other")) != 0 {
			t.Errorf("with a policy that is given they are %+v, error %v", p.Releases(""), err)
		}
	})
}
