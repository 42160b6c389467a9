package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// failing stores 10 tasks of the kind mail for each of the last 60 minutes, which failed
// then for the first time.
func (b backlog) failing() {
	b.t.Helper()
	// By one statement, so that the tens are a whole minute apart: a profile takes the tasks of
	// a minute of the clock to be evenly spread, and of two tens it would be wrong.
	b.addEach("mail", 600, 1, func(first int64) string {
		return fmt.Sprintf("30000000 + 60000000 * floor((id - %d) / 10)", first)
	})
}

// about reports whether a number is near another one: tests take seconds, in which tasks
// fall due in the minute before.
func about(got, want, tolerance int64) bool { return got >= want-tolerance && got <= want+tolerance }

func TestForecast(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "2h")})
		empty, err := i.Profile(t.Context())
		if err != nil || empty.Tasks != 0 {
			t.Fatalf("an empty table has the profile %+v, error %v", empty, err)
		}
		b.failing()
		own := parse(t, "delay 30m")
		b.add("report", 7, 3, time.Minute, falldue.EnqueueOptions{Policy: own})
		b.add("charge", 5, 2, time.Hour)
		b.add("charge", 4, 0, time.Second)
		b.add("charge", 3, 0, -48*time.Hour)
		p, err := i.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Forecast(0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Tasks != 619 || f.All.Total() != 614 || f.All.Unknown != 5 || len(f.Kinds) != 3 || len(f.All.Minutes) != 24*60 {
			t.Fatalf("%d tasks, %d in the forecast, %d unknown, %d kinds", p.Tasks, f.All.Total(), f.All.Unknown, len(f.Kinds))
		}
		charge, mail, report := f.Kinds[0], f.Kinds[1], f.Kinds[2]
		if charge.Kind != "charge" || charge.Due != 4 || charge.Later != 3 || charge.Unknown != 5 {
			t.Errorf("charge: %d due, %d later, %d unknown", charge.Due, charge.Later, charge.Unknown)
		}
		if mail.Total() != 600 || mail.Due != 0 || !about(mail.Peak, 10, 9) || mail.PeakAt < time.Hour-time.Minute {
			t.Errorf("mail: %d tasks, %d due, peak %d after %v", mail.Total(), mail.Due, mail.Peak, mail.PeakAt)
		}
		var hour int64
		for _, n := range mail.Minutes[60:120] {
			hour += n
		}
		if !about(hour, 600, 10) {
			t.Errorf("mail: %d fall due in the second hour, want about 600", hour)
		}
		if n := report.Minutes[28] + report.Minutes[29]; n != 7 {
			t.Errorf("report: %d fall due after its own policy's half hour, want 7", n)
		}
		if f, err = p.Forecast(10 * time.Minute); err != nil || f.All.Later != 610 || len(f.All.Minutes) != 10 {
			t.Errorf("the next ten minutes: %d later, %d minutes, error %v", f.All.Later, len(f.All.Minutes), err)
		}
		if _, err = p.Forecast(time.Second); err == nil || !strings.Contains(err.Error(), "a horizon of 1s: must be 1m0s to 8760h0m0s") {
			t.Errorf("a horizon of a second: error %v", err)
		}
	})
}

func TestDiff(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.failing()
		own := parse(t, "delay 30m")
		b.add("mail", 7, 3, time.Minute, falldue.EnqueueOptions{Policy: own})
		b.add("mail", 4, 0, time.Second)
		b.add("charge", 5, 1, 50*time.Minute)
		for _, c := range []struct {
			from, to                              string
			atOnce, sooner, later, exhausted      int64
			herd                                  bool
			dueBefore, dueAfter, peakMin, peakMax int64
		}{
			{"2h", "30m", 300, 300, 0, 0, true, 4, 304, 304, 330},
			{"30m", "2h", 0, 0, 600, 0, false, 304, 4, 10, 20},
			{"2h", "delay 2h; attempts 1", 0, 0, 0, 600, false, 4, 4, 10, 20},
			{"delay 2h; attempts 1", "2h", 0, 0, 0, 0, false, 4, 4, 10, 20},
			{"2h", "3h + 0s * n", 0, 0, 600, 0, false, 4, 4, 10, 20},
		} {
			p, err := b.ops(map[string]backoff.Policy{"mail": parse(t, c.from)}).Profile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			d, err := p.Diff("mail", parse(t, c.to), 0)
			if err != nil {
				t.Fatal(err)
			}
			if d.Tasks != 604 || d.Own != 7 || !about(d.AtOnce, c.atOnce, 10) || !about(d.Sooner, c.sooner, 10) || !about(d.Later, c.later, 10) || d.Exhausted != c.exhausted || d.Herd != c.herd {
				t.Errorf("%s to %s: %d tasks, %d with a policy of their own, %d at once, %d sooner, %d later, %d exhausted, herd %v", c.from, c.to, d.Tasks, d.Own, d.AtOnce, d.Sooner, d.Later, d.Exhausted, d.Herd)
			}
			if !about(d.Before.Due, c.dueBefore, 10) || !about(d.After.Due, c.dueAfter, 10) || d.After.Peak < c.peakMin-10 || d.After.Peak > c.peakMax || d.Before.Total() != 604 || d.After.Total() != 604 {
				t.Errorf("%s to %s: %d due before, %d after, peak %d", c.from, c.to, d.Before.Due, d.After.Due, d.After.Peak)
			}
		}
	})
}

// TestRamp runs the steps of a ramp task by task: none of its minutes has more than the
// rate, and the last step is the new policy.
func TestRamp(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, testdb.SQLite)
	b.failing()
	from, to := parse(t, "2h"), parse(t, "delay 30m; jitter 0.1 * delay; attempts 9")
	p, last := b.rampIsSlow(from, from, to)
	if took := last.After; took > time.Hour {
		t.Errorf("the ramp takes %v, and the old policy alone an hour to the first task", took)
	}
	for says, rate := range map[string]int64{"a rate of 0 tasks a minute: must be 1 or more": 0} {
		if _, err := p.Ramp("mail", to, rate); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("rate %d: error %v", rate, err)
		}
	}
	if _, err := p.Ramp("charge", to, 1); err == nil || !strings.Contains(err.Error(), "the policy of kind charge is not known") {
		t.Errorf("error %v", err)
	}
	p, err := b.ops(map[string]backoff.Policy{"mail": to}).Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if steps, err := p.Ramp("mail", from, 1); err != nil || len(steps) != 1 || steps[0].After != 0 {
		t.Errorf("a ramp to a longer delay: %+v, error %v", steps, err)
	}
}

// TestRampOfWhatIsHeld: tasks that are due under the code's policy and held count, also where
// the hold is of their queue. Those that a more specific override holds are left alone.
func TestRampOfWhatIsHeld(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.failing()
		b.add("mail", 50, 1, time.Hour, falldue.EnqueueOptions{Queue: "bulk"})
		set := func(s falldue.Subject, o ...ops.OverrideOptions) {
			t.Helper()
			if err := ops.New(b.queue).SetPolicy(t.Context(), s, ops.Hold(), o...); err != nil {
				t.Fatal(err)
			}
		}
		set(falldue.Subject{Queue: "bulk", Kind: "mail"})
		for _, s := range []falldue.Subject{{Queue: "default"}, {Kind: "mail"}} {
			set(s, ops.OverrideOptions{Until: time.Now().Add(3 * time.Hour), Note: falldue.Note{Who: "ann"}})
			code, to := parse(t, "10m"), parse(t, "30m")
			p, last := b.rampIsSlow(code, ops.Hold().Of(code), to)
			if last.After < 11*time.Minute || last.After > 2*time.Hour {
				t.Errorf("%s: the ramp takes %v", s, last.After)
			}
			e, err := p.Diff("mail", to, 0)
			if err != nil || e.Tasks != 600 || !about(e.AtOnce, 300, 10) || !about(e.Sooner, 300, 10) || e.Later != 0 || e.Kept != 50 || (e.Replaces == nil) == (s.Kind != "") {
				t.Errorf("%s: %d tasks, %d at once, %d sooner, %d later, %d kept, replaces %+v, error %v", s, e.Tasks, e.AtOnce, e.Sooner, e.Later, e.Kept, e.Replaces, err)
			}
			if e.Before.Due != 0 || e.Before.Peak != 600 || (e.Before.PeakAt-3*time.Hour).Abs() > 2*time.Minute {
				t.Errorf("%s: before, %d are due, and %d in %v", s, e.Before.Due, e.Before.Peak, e.Before.PeakAt)
			}
			later, err := p.Impact(ops.Override{Subject: s, Formula: ops.Hold(), Until: p.At.Add(5 * time.Hour)}, 0)
			if err != nil || later.Later != 600 || later.Sooner != 0 {
				t.Errorf("%s: a longer hold: %+v, error %v", s, later, err)
			}
		}
	})
}

// rampIsSlow runs the steps of a ramp of mails task by task: none of its minutes has more
// than the rate, and the last step is the new policy. Before it policy from holds.
func (b backlog) rampIsSlow(code, from, to backoff.Policy) (p *ops.Profile, last ops.Step) {
	b.t.Helper()
	t := b.t
	p, err := b.ops(map[string]backoff.Policy{"mail": code}).Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := listed(ops.New(b.queue).Tasks(t.Context(), ops.Filter{Queue: "default"}, ops.ListOptions{Limit: 1000}))
	if err != nil {
		t.Fatal(err)
	}
	const rate = 25
	steps, err := p.Ramp("mail", to, rate)
	if err != nil {
		t.Fatal(err)
	}
	last = steps[len(steps)-1]
	if last.Policy.String() != to.String() || last.Share != 1 || len(steps) < 5 {
		t.Fatalf("%d steps, the last is %+v", len(steps), last)
	}
	policy, next, ran := from, 0, map[int64]bool{}
	for minute := range 180 {
		if next < len(steps) && steps[next].After == time.Duration(minute)*time.Minute {
			policy = steps[next].Policy
			next++
		}
		due := 0
		for _, task := range tasks {
			if !ran[task.ID] && !task.Due(policy).After(p.At.Add(time.Duration(minute+1)*time.Minute)) {
				ran[task.ID] = true
				due++
			}
		}
		if due > rate {
			t.Errorf("%d tasks fall due in minute %d under %s, want at most %d", due, minute, policy, rate)
		}
	}
	if len(ran) != 600 || next != len(steps) {
		t.Errorf("%d tasks have run after %d of %d steps", len(ran), next, len(steps))
	}
	if got := steps[0].Policy; got.MaxAttempts() != to.MaxAttempts() || got.Jitter().IsZero() != to.Jitter().IsZero() {
		t.Errorf("a step lacks the limits of the new policy: %s", got)
	}
	return p, last
}

func TestStalled(t *testing.T) {
	t.Parallel()
	f := ops.Forecast{Kinds: []ops.KindLoad{
		{Kind: "done", Load: ops.Load{Due: 3}}, {Kind: "later"}, {Kind: "stuck", Load: ops.Load{Due: 1}},
	}}
	if got := f.Stalled(ops.Pace{PerSecond: 2, Kinds: map[string]float64{"done": 2}}); !slices.Equal(got, []string{"stuck"}) {
		t.Errorf("the stalled kinds are %q", got)
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		load ops.Load
		rate float64
		want string
	}{
		"nothing waits":          {ops.Load{Minutes: []int64{0}}, 1, "0s true"},
		"a backlog and a minute": {ops.Load{Due: 100, Minutes: []int64{60, 0, 0, 0}}, 1, "2m40s true"},
		"less than a minute":     {ops.Load{Due: 30, Minutes: []int64{0, 500}}, 10, "3s true"},
		"not within the horizon": {ops.Load{Due: 1000, Minutes: []int64{0, 0}}, 1, "0s false"},
	} {
		got, ok := c.load.Gone(c.rate)
		if text := fmt.Sprint(got, " ", ok); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
