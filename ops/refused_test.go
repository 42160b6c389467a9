package ops_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// nodes returns a formula with so many terms, which add nothing.
func nodes(terms int) string {
	if terms == 1 {
		return "0s"
	}
	return "(" + nodes(terms/2) + " + " + nodes(terms-terms/2) + ")"
}

// mentions reports whether one of findings asks for attention with a text.
func mentions(findings []ops.Finding, text string) bool {
	for _, f := range findings {
		if f.Level == ops.Attention && strings.Contains(f.Text, text) {
			return true
		}
	}
	return false
}

// TestRefusedOverrides: an override that one worker cannot apply, since the formula would be too
// large with the policy of its code, is announced with what holds there; why has a time for it,
// and doctor names it, until it is cleared.
func TestRefusedOverrides(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		twice, err := backoff.ParseOverride("delay original + original")
		if err != nil {
			t.Fatal(err)
		}
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, twice); err != nil {
			t.Fatal(err)
		}
		large := parse(t, "1h + "+nodes(128))
		defer b.start(falldue.Config{Name: "large"}, handle(falldue.KindConfig{Policy: large}, succeed, "mail"))()
		list := b.workers(i, "the refusal", func(list []ops.Worker) bool { return len(list) == 1 && len(list[0].Refused) == 1 })
		r := list[0].Refused[0]
		if r.Subject != "kind:mail" || r.Own != large.String() || r.Holds != large.String() || !strings.Contains(r.Error, "512 nodes") || len(r.Workers) != 1 || r.Workers[0] != list[0].ID {
			t.Errorf("refused is %+v", r)
		}
		if f := b.findings(i)["workers"]; !mentions(f, "1 worker cannot apply the policy override for kind:mail, so \"") || !mentions(f, list[0].ID) || !mentions(f, "512 nodes") {
			t.Errorf("workers: %+v", f)
		}
		id := b.enqueue("mail", falldue.EnqueueOptions{Delay: time.Hour})
		b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1, updated_at = created_at where id = ?"), id)
		c := onlyReason[ops.WhyDue](t, b.why(i, id))
		if len(c.Rules) != 1 || c.Rules[0].Delay != time.Hour || !strings.Contains(c.Rules[0].Refused, "512 nodes") || c.Override == nil {
			t.Errorf("%+v", c)
		}

		defer b.start(falldue.Config{Name: "small"}, handle(falldue.KindConfig{Policy: backoff.Constant(2 * time.Hour)}, succeed, "mail"))()
		both := b.workers(i, "both workers", announced(2))
		set, err := i.Overrides(t.Context())
		if err != nil || len(set) != 1 {
			t.Fatalf("%+v, error %v", set, err)
		}
		b.workers(i, "the override on one of both workers", func(list []ops.Worker) bool {
			return len(list) == 2 && !set[0].AppliedBy(list[0]) && set[0].AppliedBy(list[1])
		})
		w := b.why(i, id)
		c = onlyReason[ops.WhyDue](t, w)
		if len(c.Rules) != 2 || c.Rules[0].Refused == "" || c.Rules[1].Delay != 4*time.Hour || c.Rules[1].Refused != "" || len(c.Rules[1].Workers) != 1 || !b.near(w.Next(), w.Task.Now.Add(time.Hour)) {
			t.Errorf("of %+v: %+v", both, c)
		}
		if err := ops.New(b.queue).ClearPolicy(t.Context(), falldue.Subject{Kind: "mail"}); err != nil {
			t.Fatal(err)
		}
		b.workers(i, "the end of the override on the other worker", func(list []ops.Worker) bool {
			return !slices.ContainsFunc(list, func(w ops.Worker) bool { return len(w.Applied) > 0 })
		})
		b.workers(i, "the end of the refusal", func(list []ops.Worker) bool { return len(ops.RefusedOverrides(list)) == 0 })
		if c := onlyReason[ops.WhyDue](t, b.why(i, id)); len(c.Rules) != 2 || c.Rules[0].Refused != "" {
			t.Errorf("%+v", c)
		}
	})
}

// TestRefusedOverrideOfTasksOwnPolicy: the time of a task with a policy of its own differs by
// worker, too.
func TestRefusedOverrideOfTasksOwnPolicy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		own := parse(t, "delay 30m")
		id := b.enqueue("mail", falldue.EnqueueOptions{Policy: own, Delay: time.Hour})
		b.db.MustExec(b.db.Rebind("update falldue_tasks set attempts = 1, fence = 1, updated_at = created_at where id = ?"), id)
		four, err := backoff.ParseOverride("delay 4 * original")
		if err != nil {
			t.Fatal(err)
		}
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, four, ops.OverrideOptions{IncludeOwn: true}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			refused string
			due     []time.Duration
			errs    []string
		}{
			{"", []time.Duration{2 * time.Hour}, []string{""}},
			{`{"subject":"kind:mail","own":"delay 1h","holds":"delay 1h","error":"of another policy"}`, []time.Duration{2 * time.Hour}, []string{""}},
			{`{"subject":"kind:mail","own":"delay 30m","holds":"delay 45m","error":"too large"}`, []time.Duration{45 * time.Minute}, []string{"too large"}},
			{`{"subject":"kind:mail","own":"","holds":"","error":"not known here"}`, []time.Duration{30 * time.Minute}, []string{"not known here"}},
		} {
			b.says(`"refused":[` + c.refused + `]`)
			got := conditionOf[ops.WhyDue](t, b.why(i, id))
			if len(got.Rules) != len(c.due) {
				t.Fatalf("%s: %+v", c.refused, got)
			}
			for k, r := range got.Rules {
				if r.Delay != c.due[k] || r.Refused != c.errs[k] {
					t.Errorf("%s: %+v", c.refused, r)
				}
			}
		}
	})
}

// TestWorkersThatCannotReadChanges: one that cannot read pauses, overrides and cancels says so,
// until it can.
func TestWorkersThatCannotReadChanges(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		stop := b.start(falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		defer stop()
		b.workers(i, "the worker", announced(1))
		b.db.MustExec("alter table falldue_changes rename to moved")
		list := b.workers(i, "its trouble", func(list []ops.Worker) bool { return len(list) == 1 && list[0].Unread != "" })
		if f := b.findings(i)["workers"]; !mentions(f, "worker "+list[0].ID+" cannot read pauses, overrides and cancellations: ") {
			t.Errorf("workers: %+v", f)
		}
		b.db.MustExec("alter table moved rename to falldue_changes")
		b.workers(i, "the end of its trouble", func(list []ops.Worker) bool { return len(list) == 1 && list[0].Unread == "" })
	})
}

// TestWhySaysWhichWorkersCannotReadChanges: of those that handle the task.
func TestWhySaysWhichWorkersCannotReadChanges(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		b.says(`"unread":"permission denied"`)
		w := b.why(i, b.enqueue("mail"))
		c := conditionOf[ops.WhyWorker](t, w)
		if !c.Holds() || len(c.Unread) != 1 || c.Unread[0] != "idle" || c.UnreadError != "permission denied" || !strings.Contains(c.Describe(w.Task), "; of these idle cannot read pauses, overrides and cancellations, and apply the last known ones: permission denied") {
			t.Errorf("%+v: %s", c, c.Describe(w.Task))
		}
	})
}

// TestWorkersThatCannotReadATasksPolicy: of a real worker whose table lacks it, and of one of two.
func TestWorkersThatCannotReadATasksPolicy(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		own := parse(t, "delay 30m")
		task, err := b.queue.Task(t.Context(), b.enqueue("mail", falldue.EnqueueOptions{Policy: own}))
		if err != nil {
			t.Fatal(err)
		}
		b.db.MustExec("update falldue_policies set policy = '2 * theirs'") // of a newer release
		stop := b.start(falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		reads := func(w ops.Worker) bool { return len(w.UnreadPolicies) == 0 }
		list := b.workers(i, "its trouble", func(list []ops.Worker) bool {
			return len(list) == 2 && slices.ContainsFunc(list, func(w ops.Worker) bool { return !reads(w) })
		})
		list = slices.DeleteFunc(list, reads)
		if f := b.findings(i)["workers"]; !mentions(f, "worker "+list[0].ID+" cannot read per-task policy "+task.Policy+",") {
			t.Errorf("workers: %+v", f)
		}
		stop()
		b.workers(i, "its end", announced(1))

		// This program can read it, and the workers cannot.
		b.db.MustExec("update falldue_policies set policy = 'delay 30m'")
		b.says(`"unreadable_policies":{"` + task.Policy + `":"too new"}`)
		w := b.why(i, task.ID)
		c := onlyReason[ops.WhyPolicy](t, w)
		if c.Text != "delay 30m" || c.Err != nil || c.Handling != 1 || len(c.Unread) != 1 || !strings.HasSuffix(c.Describe(w.Task), "; 1 of 1 worker of its queue and kind cannot read the policy, and do not run the task (idle): too new") {
			t.Errorf("%+v: %s", c, c.Describe(w.Task))
		}
		b.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, done, failed, running) select 'other', started_at, seen_at, '" +
			`{"queues":{"default":{"concurrency":1}},"kinds":{"mail":{"policy":"1h"}}}` + "', 0, 0, 0 from falldue_workers")
		if c := conditionOf[ops.WhyPolicy](t, b.why(i, task.ID)); !c.Holds() || c.Handling != 2 || len(c.Unread) != 1 {
			t.Errorf("with a worker that can read it: %+v", c)
		}
	})
}

// says adds a member to what the worker of fleet says of itself.
func (b backlog) says(member string) {
	b.t.Helper()
	var info string
	if err := b.db.Get(&info, "select info from falldue_workers where id = 'idle'"); err != nil {
		b.t.Fatal(err)
	}
	info = strings.TrimSuffix(info, "}") + "," + member + "}" // the last of several counts
	b.db.MustExec(b.db.Rebind("update falldue_workers set info = ? where id = 'idle'"), info)
}

// TestRefusedPauses: a pause that a newer release has set for a subject that a worker does not know
// is announced, and doctor names it, until it is resumed. The tasks continue meanwhile.
func TestRefusedPauses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		change := func(what string) {
			t.Helper()
			if err := hooks.StoreOf(b.queue).PutChange(t.Context(), store.Change{Subject: "kind:mail shard:3", What: what}); err != nil {
				t.Fatal(err)
			}
		}
		change(statements.ChangePause)
		defer b.start(falldue.Config{Name: "older"}, handle(falldue.KindConfig{}, succeed, "mail"))()
		list := b.workers(i, "the pause", func(list []ops.Worker) bool { return len(ops.RefusedPauses(list)) == 1 })
		p := ops.RefusedPauses(list)[0]
		if p.Subject != "kind:mail shard:3" || len(p.Workers) != 1 || p.Workers[0] != list[0].ID || !strings.Contains(p.Error, "does not know the subject") {
			t.Errorf("refused is %+v", p)
		}
		if f := b.findings(i)["workers"]; !mentions(f, "1 worker cannot apply the pause of kind:mail shard:3, so its tasks still run there ("+list[0].ID+"): this release does not know") {
			t.Errorf("workers: %+v", f)
		}
		change(statements.ChangeResume)
		b.workers(i, "the resumption", func(list []ops.Worker) bool { return len(list) == 1 && len(ops.RefusedPauses(list)) == 0 })
	})
}

// TestHandlersPastTheirTimeoutAreFindings: a worker announces handlers that have not returned
// although their timeout has passed, and doctor says so.
func TestHandlersPastTheirTimeoutAreFindings(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail"))
		if f := b.findings(i)["runs"]; len(f) != 1 || f[0].Level != ops.Fine {
			t.Errorf("runs: %+v", f)
		}
		b.says(`"overtime":{"mail":"2 handlers over the timeout of 1s, the first for 2m10s: 2 3"}`)
		if f := b.findings(i)["runs"]; !mentions(f, "kind mail on worker idle: 2 handlers over the timeout of 1s, the first for 2m10s: 2 3") {
			t.Errorf("runs: %+v", f)
		}
	})
}
