package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func override(t *testing.T, text string) backoff.Override {
	t.Helper()
	o, err := backoff.ParseOverride(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestHold: the override of an incident parses, and lets nobody die of the wait.
func TestHold(t *testing.T) {
	t.Parallel()
	held := ops.Hold().Of(parse(t, "delay 1m; jitter 0.5 * delay; attempts 3; elapsed 1h"))
	delay, jitter := held.Wait(1)
	if held.Err() != nil || delay != 36500*24*time.Hour || jitter != 30*time.Second || held.MaxElapsed() != 0 || held.MaxAttempts() != 3 {
		t.Errorf("a policy on hold is %s, error %v", held, held.Err())
	}
	slow, err := ops.Slow(2.5)
	if delay, _ = slow.Of(parse(t, "1m")).Wait(1); err != nil || delay != 150*time.Second {
		t.Errorf("a slow policy waits %v, error %v", delay, err)
	}
	if _, err := ops.Slow(-1); err == nil || !strings.Contains(err.Error(), "the factor -1: must be above 0") {
		t.Errorf("error %v", err)
	}
}

// TestWeigh: compared with what holds now, with the most specific override, and with what is
// not known.
func TestWeigh(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.failing()
		own := parse(t, "delay 3h")
		b.add("mail", 7, 3, time.Minute, falldue.EnqueueOptions{Policy: own})
		b.add("mail", 5, 1, 10*time.Minute, falldue.EnqueueOptions{Key: "customer:7"})
		b.add("charge", 4, 2, time.Minute)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "2h")})
		weigh := func(o ops.Override) ops.Effect {
			t.Helper()
			p, err := i.ProfileKey(t.Context(), o.Key)
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.Impact(o, 0)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		mail := falldue.Subject{Kind: "mail"}
		if e := weigh(ops.Override{Subject: mail, Formula: override(t, "original / 4")}); e.Tasks != 605 || e.Own != 7 || !about(e.AtOnce, 300, 10) || e.Later != 0 || e.Unknown != 0 || !e.Drastic(100) || e.Drastic(400) {
			t.Errorf("a quarter: %+v", e)
		}
		if e := weigh(ops.Override{Subject: mail, Formula: override(t, "original / 4"), IncludeOwn: true}); e.Tasks != 612 || e.Own != 0 || e.Sooner < 300 {
			t.Errorf("a quarter of all: %+v", e)
		}
		if e := weigh(ops.Override{Subject: mail, Formula: override(t, "attempts 1")}); e.Exhausted != 605 || e.AtOnce != 0 || !e.Drastic(604) || e.Drastic(605) {
			t.Errorf("one attempt: %+v", e)
		}
		if e := weigh(ops.Override{Subject: falldue.Subject{Queue: "default"}, Formula: override(t, "2 * original; attempts 2")}); e.Tasks != 605 || e.Later != 605 || e.Unknown != 4 || e.UnknownExhausted != 4 || e.Own != 7 {
			t.Errorf("a queue with a kind that is not known: %+v", e)
		}
		if e := weigh(ops.Override{Subject: falldue.Subject{Key: "customer:7"}, Formula: override(t, "5m")}); e.Tasks != 5 || e.AtOnce != 5 {
			t.Errorf("a key: %+v", e)
		}
		steps := func(first string, later ...string) (o ops.Override) {
			o.Subject, o.Formula = mail, override(t, first)
			o.Steps = append(o.Steps, ops.OverrideStep{Formula: o.Formula})
			for i, text := range later {
				o.Steps = append(o.Steps, ops.OverrideStep{After: time.Duration(i+1) * time.Minute, Formula: override(t, text)})
			}
			return o
		}
		if e := weigh(steps("2 * original", "original / 4", "original")); !about(e.AtOnce, 310, 10) || e.Exhausted != 0 || e.Later != 605 || !about(e.After.Peak, 320, 15) || e.After.PeakAt > time.Minute {
			t.Errorf("a step that wakes: %d at once, %d exhausted, %d later, a peak of %d after %v", e.AtOnce, e.Exhausted, e.Later, e.After.Peak, e.After.PeakAt)
		}
		if e := weigh(steps("original", "attempts 1", "original")); e.Exhausted != 605 || e.AtOnce != 0 || !e.Drastic(604) {
			t.Errorf("a step that kills: %+v", e)
		}
		hold := ops.Override{Subject: mail, Formula: ops.Hold(), Until: time.Now().Add(6 * time.Hour)}
		if e := weigh(hold); e.AtOnce != 0 || e.Later != 605 || e.After.Peak < 600 || (e.After.PeakAt-6*time.Hour).Abs() > 2*time.Minute || e.AtEnd != 605 {
			t.Errorf("a hold that ends: %d at once, %d later, a peak of %d after %v", e.AtOnce, e.Later, e.After.Peak, e.After.PeakAt)
		}
		if hold.Until = time.Now().Add(time.Minute); weigh(hold).AtEnd > 50 { // most are not due by then, and those that are are due now
			t.Errorf("a hold that ends soon wakes %d", weigh(hold).AtEnd)
		}
		if hold.Formula, hold.Until = override(t, "original / 4"), time.Now().Add(6*time.Hour); weigh(hold).AtEnd != 0 {
			t.Errorf("the end of a shorter delay wakes %d", weigh(hold).AtEnd)
		}
		p, err := i.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.ResumeImpact(falldue.Subject{Key: "x"}, nil); err == nil || !strings.Contains(err.Error(), "read the profile with ProfileKey") {
			t.Errorf("error %v", err)
		}
		if _, err := p.Impact(ops.Override{Subject: falldue.Subject{Key: "x"}}, 0); err == nil || !strings.Contains(err.Error(), "read the profile with ProfileKey") {
			t.Errorf("error %v", err)
		}

		if err := ops.New(b.queue).SetPolicy(t.Context(), mail, override(t, "4 * original")); err != nil {
			t.Fatal(err)
		}
		if e := weigh(ops.Override{Subject: mail, Formula: override(t, "2 * original")}); e.Sooner != 605 || e.AtOnce != 0 {
			t.Errorf("instead of another one: %+v", e)
		}
		if e := weigh(ops.Override{Subject: falldue.Subject{Queue: "default"}, Formula: override(t, "0s")}); e.Tasks != 0 || e.Unknown != 4 {
			t.Errorf("beside a more specific one: %+v", e)
		}
	})
}

// TestOverridesEnd: what is due by the end of an override counts for that time.
func TestOverridesEnd(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("mail", 10, 1, 5*time.Minute)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "10m")})
		task, err := b.queue.Task(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		until := task.Now.Add(2 * time.Hour)
		step := ops.OverrideStep{After: 90 * time.Minute, Formula: override(t, "original + 1h30m")}
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{Until: until, Steps: []ops.OverrideStep{step}}); err != nil {
			t.Fatal(err)
		}
		check := func(what string, want time.Duration, held bool) {
			t.Helper()
			known, err := i.Policies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			due := known.Due(task).Sub(task.Now)
			future, err := known.Ahead(task, 1)
			if err != nil || len(future.Runs) != 1 || future.Runs[0].Earliest.Sub(task.Now) != due || (due-want).Abs() > 10*time.Second {
				t.Errorf("%s: due in %v, ahead %+v, error %v; want %v", what, due, future, err, want)
			}
			if c := conditionOf[ops.WhyDue](t, b.why(i, 1)); c.Holds() || (c.At().Sub(task.Now)-want).Abs() > 10*time.Second || c.Rules[0].Delay > 2*time.Hour || (c.Rules[0].From.IsZero() == held) {
				t.Errorf("%s: why says %+v, want that it is due in %v", what, c, want)
			}
			p, err := i.Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f, err := p.Forecast(0)
			if err != nil || f.All.Total() != 10 || f.All.Peak != 10 || (f.All.PeakAt-want).Abs() > 70*time.Second {
				t.Errorf("%s: the forecast has %d tasks, and %d in %v, error %v; want %v", what, f.All.Total(), f.All.Peak, f.All.PeakAt, err, want)
			}
		}
		check("a step that makes them due", 95*time.Minute, true)
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{Until: until}); err != nil {
			t.Fatal(err)
		}
		check("a hold that ends", 2*time.Hour, true)
		if err := ops.New(b.queue).ClearPolicy(t.Context(), falldue.Subject{Kind: "mail"}); err != nil {
			t.Fatal(err)
		}
		check("nothing", 5*time.Minute, false)
		if err := ops.New(b.queue).SetPolicy(t.Context(), falldue.Subject{Kind: "mail"}, override(t, "original + 2m"), ops.OverrideOptions{Until: task.Now.Add(2 * time.Minute)}); err != nil {
			t.Fatal(err)
		}
		check("an override that ends before they are due", 5*time.Minute, false)
	})
}

// TestRelease takes the steps one after the other: in each as many tasks become due, the
// oldest first. At the end those are due that would be due then without the steps.
func TestRelease(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, testdb.SQLite)
	b.failing()
	i := b.ops(map[string]backoff.Policy{"mail": parse(t, "45m")})
	p, err := i.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := listed(ops.New(b.queue).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 1000}))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := p.Release(falldue.Subject{Kind: "mail"}, false, 20*time.Minute)
	if err != nil || len(steps) != 20 || steps[0].After != 0 || steps[19].After != 19*time.Minute {
		t.Fatalf("the steps are %+v, error %v", steps, err)
	}
	due, late := 0, 0
	for _, task := range tasks {
		if at := task.Due(parse(t, "45m")); !at.After(p.At.Add(20 * time.Minute)) {
			due++
			if !at.After(p.At) {
				late++
			}
		}
	}
	ran := map[int64]bool{}
	for minute, step := range steps {
		released := 0
		for _, task := range tasks {
			if end := p.At.Add(time.Duration(minute+1) * time.Minute); !ran[task.ID] && !task.Due(step.Formula.Of(parse(t, "45m"))).After(end) {
				ran[task.ID] = true
				released++
			}
		}
		if released > due/20+10 {
			t.Errorf("in minute %d %d tasks become due; there are %d in 20 minutes", minute, released, due)
		}
	}
	if !about(int64(len(ran)), int64(due), 10) || late > due-100 {
		t.Errorf("%d tasks have become due, want %d, %d of them late", len(ran), due, late)
	}
	for says, over := range map[string]time.Duration{"the duration 1s: must be 5s to 168h0m0s": time.Second} {
		if _, err := p.Release(falldue.Subject{Kind: "mail"}, false, over); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// TestShortRelease releases tasks that failed within four seconds: none while workers learn of the override, and then
// equally many in each step.
func TestShortRelease(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.addEach("mail", 400, 1, func(first int64) string { return fmt.Sprintf("900000000 + 10000 * (id - %d)", first) })
		code := parse(t, "10m")
		p, err := b.ops(map[string]backoff.Policy{"mail": code}).Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := listed(ops.New(b.queue).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 1000}))
		if err != nil {
			t.Fatal(err)
		}
		steps, err := p.Release(falldue.Subject{Kind: "mail"}, false, 42*time.Second)
		if err != nil || len(steps) != 41 || steps[0].After != 0 || steps[40].After != 41*time.Second {
			t.Fatalf("the steps are %+v, error %v", steps, err)
		}
		ran := map[int64]bool{}
		for i, step := range steps {
			end, want, due := p.At.Add(42*time.Second), int64(10), int64(0)
			if i == 0 {
				want = 0
			}
			if i < len(steps)-1 {
				end = p.At.Add(steps[i+1].After)
			}
			for _, task := range tasks {
				if !ran[task.ID] && !task.Due(step.Formula.Of(code)).After(end) {
					ran[task.ID] = true
					due++
				}
			}
			if !about(due, want, 2) {
				t.Errorf("in step %d %d tasks become due, want %d", i, due, want)
			}
		}
	})
}
