package dash

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

// draft is an override that a user is writing.
type draft struct {
	Subject falldue.Subject
	// Form is "set", "slow", "hold" or "ramp". Text is for "set", Factor for "slow", and Over for "ramp".
	Form, Text, Factor, Over string
	// PerMinute is how many tasks may fall due in a minute on the way to a policy, or "" for no such limit.
	PerMinute  string
	Until, Why string
	IncludeOwn bool
	// Perhaps is the error of an invalid draft, or "".
	Perhaps string
	formula backoff.Override
}

// readDraft reads a draft of a form or of parameters.
func readDraft(v url.Values) (d draft, err error) {
	d = draft{Form: cmp.Or(v.Get("form"), "set"), Text: v.Get("override"), Factor: cmp.Or(v.Get("factor"), "4"), Over: cmp.Or(v.Get("over"), "30m"), PerMinute: v.Get("per-minute"), Until: v.Get("until"), Why: v.Get("why"), IncludeOwn: v.Get("own") != ""}
	if !v.Has("until") {
		d.Until = "2h"
	}
	if d.Subject, err = falldue.ParseSubject(v.Get("subject")); err != nil {
		return d, err
	}
	switch d.Form {
	case "set":
		if d.Text == "" {
			return d, nil
		}
		d.formula, err = backoff.ParseOverride(d.Text)
	case "slow":
		var factor float64
		if factor, err = strconv.ParseFloat(strings.TrimSuffix(d.Factor, "x"), 64); err == nil {
			d.formula, err = ops.Slow(factor)
		}
	case "hold":
		d.formula = ops.Hold()
	case "ramp":
		_, err = ops.ParseDuration(d.Over)
	default:
		return d, mistake("form " + strconv.Quote(d.Form) + ": must be set, slow, hold or ramp")
	}
	if err == nil && d.PerMinute != "" {
		err = d.checkRamp()
	}
	if err != nil {
		d.Perhaps = strings.TrimPrefix(err.Error(), "falldue: ")
	}
	return d, nil
}

// Rampable reports whether the draft may reach its policy in steps.
func (d draft) Rampable() bool {
	return d.Subject == (falldue.Subject{Kind: d.Subject.Kind}) && (d.Form == "set" || d.Form == "slow")
}

// checkRamp checks how many tasks may fall due in a minute.
func (d draft) checkRamp() error {
	if !d.Rampable() {
		return mistake("tasks per minute: a ramp needs a policy or a slowdown, and a kind")
	}
	if n, err := strconv.ParseInt(d.PerMinute, 10, 64); err != nil || n < 1 {
		return mistake("tasks per minute: " + strconv.Quote(d.PerMinute) + " is not a whole number above 0")
	}
	return nil
}

// ramp returns the steps to the draft's policy in which at most so many tasks fall due in a minute.
func (d draft) ramp(p *ops.Profile, perMinute int64) ([]ops.OverrideStep, error) {
	code, known := p.Policies().Code(falldue.TaskInfo{Kind: d.Subject.Kind})
	if !known {
		return nil, mistake("No live worker handles kind " + d.Subject.Kind + ", so its current policy is unknown. A ramp starts at that policy.")
	}
	ramp, err := p.Ramp(d.Subject.Kind, d.formula.Of(code), perMinute)
	if err != nil {
		return nil, err
	}
	steps, err := ops.Overrides(ramp)
	if err == nil {
		steps[len(steps)-1].Formula = d.formula // the formula, so that a later deploy changes it
	}
	return steps, err
}

// Ready reports whether the draft is complete.
func (d draft) Ready() bool {
	return d.Perhaps == "" && (d.Form != "set" || d.Text != "")
}

// override returns the override of a draft, for the tasks of a profile.
func (d draft) override(p *ops.Profile) (o ops.Override, err error) {
	o = ops.Override{Subject: d.Subject, IncludeOwn: d.IncludeOwn, Formula: d.formula, Steps: []ops.OverrideStep{{Formula: d.formula}}}
	if d.Form == "ramp" {
		over, err := ops.ParseDuration(d.Over)
		if err != nil {
			return o, err
		}
		if o.Steps, err = p.Release(d.Subject, d.IncludeOwn, over); err != nil {
			return o, err
		}
		o.Formula, o.Until = o.Steps[0].Formula, p.At.Add(over)
		return o, nil
	}
	if d.PerMinute != "" {
		most, err := strconv.ParseInt(d.PerMinute, 10, 64)
		if err != nil {
			return o, err
		}
		if o.Steps, err = d.ramp(p, most); err != nil {
			return o, err
		}
		o.Formula = o.Steps[0].Formula
	}
	if d.Until != "" {
		if o.Until, err = ops.ParseUntil(d.Until, p.At, time.Now()); err != nil {
			return o, mistake("until: " + err.Error())
		}
	}
	return o, nil
}

// policyView is what the editor of a policy shows.
type policyView struct {
	draft
	kindPolicy
	Target  Target
	Now     time.Time
	Age     time.Duration
	Trouble *trouble
	Presets []preset
	Preview *previewView
	Weighed *weighed
	// Tasks and Takes are the cost of weighing.
	Tasks   int64
	Takes   time.Duration
	Workers int
	Uptake  *uptake
}

// preset is an override to begin with.
type preset struct{ Text, URL string }

// previewView shows a policy alongside the one that is in effect.
type previewView struct {
	Text   string // canonical
	Chart  template.HTML
	Herd   template.HTML
	Delays []delayRow
	End    string
	// Changed reports whether the chart and the table have the policy of the draft, too.
	Changed bool
}

// delayRow is the wait after a number of failures.
type delayRow struct {
	Failures int
	Now, New string
}

// weighed is the effect of an override on the waiting tasks.
type weighed struct {
	ops.Effect
	Chart   template.HTML
	Drastic bool
	At      time.Time
	Age     time.Duration
	Note    string
	Steps   int   // of the override, if several
	Ramp    *ramp // proposed instead
}

// ramp leads to a policy in steps, without a retry storm.
type ramp struct {
	PerMinute int64
	Steps     int
	Takes     time.Duration
	Peak      int64
	URL       string
}

// A change of more than askAbove tasks asks for confirmation.
const askAbove = 100

// subjectOf returns the subject in the parameters. The parameter kind is a short form.
func subjectOf(v url.Values) url.Values {
	if v.Get("subject") == "" && v.Get("kind") != "" {
		v = clone(v)
		v.Set("subject", "kind:"+v.Get("kind"))
	}
	return v
}

func policyPage(in *request) (page, error) {
	ctx, params := in.r.Context(), subjectOf(in.query)
	d, err := readDraft(params)
	if err != nil {
		return page{}, err
	}
	var p reading[ops.Pulse]
	var counts reading[[]ops.Count]
	var history reading[[]ops.Override]
	together(func() { p = in.h.reads.pulse.get(ctx) }, func() { counts = in.h.reads.counts.get(ctx) }, func() { history = in.h.reads.history.get(ctx) })
	v := policyView{draft: d, Target: Target{Queue: d.Subject.Queue, Kind: d.Subject.Kind, Name: d.Subject.String()}, Now: p.Value.At, Age: p.Age, Trouble: troubleOf(cmp.Or(p.Err, counts.Err, history.Err)), Workers: len(p.Value.Workers)}
	v.kindPolicy = in.h.kindPolicy(d.Subject.Kind, p.Value, counts.Value, ops.PaceOf(p.Value.Workers))
	t := falldue.TaskInfo{Queue: d.Subject.Queue, Kind: d.Subject.Kind, Policy: d.Subject.Policy, Key: d.Subject.Key}
	code, known := p.Value.Policies.Code(t)
	now, _ := p.Value.Policies.Of(t)
	v.Override = overrideOf(p.Value.Overrides, d.Subject)
	v.Uptake = uptakeOf(history.Value, d.Subject, p.Value)
	if v.Code, v.Policy = "", ""; known {
		v.Code, v.Policy = code.String(), now.String()
		if err := v.preview(ctx, code, now); err != nil {
			return page{}, err
		}
	}
	if in.query.Get("weigh") != "" && d.Ready() {
		if v.Weighed, err = in.weigh(ctx, d, p.Value.Workers); err != nil {
			if v.Weighed == nil {
				v.Weighed = &weighed{}
			}
			v.Weighed.Note = troubleOf(err).Text
		}
	}
	v.Tasks, v.Takes, _ = in.h.ops.ProfileTime(ctx)
	return page{Title: "Policy of " + d.Subject.String(), Nav: "policies", Live: in.query.Get("weigh") == "", Regions: []region{
		{ID: "now", Template: "policy-now", Data: v},
		{ID: "uptake", Template: "uptake", Data: v},
		{ID: "editor", Template: "editor", Data: v, Fixed: true},
		{ID: "preview", Template: "preview", Data: v},
		{ID: "herd", Template: "herd", Data: v},
		{ID: "weighed", Template: "weighed", Data: v},
	}}, nil
}

func overrideOf(list []ops.Override, s falldue.Subject) *ops.Override {
	for i := range list {
		if list[i].Subject == s {
			return &list[i]
		}
	}
	return nil
}

const (
	previewRetries = 16 // in the picture and the table
	herdTasks      = 200
	herdRetries    = 6
)

// preview draws a policy before and after the draft's change.
func (v *policyView) preview(ctx context.Context, code, now backoff.Policy) error {
	before, err := ops.Preview(now, previewRetries)
	if err != nil {
		return err
	}
	policies := []chart.Policy{drawn("now", before)}
	v.Preview = &previewView{Text: now.String(), End: endText(now, before)}
	after, policy := before, now
	changed := v.Ready() && v.Form != "ramp"
	if changed && v.Form != "hold" {
		policy = v.formula.Of(code)
		if err := policy.Err(); err != nil {
			v.Perhaps = err.Error()
			changed = false
		} else if after, err = ops.Preview(policy, previewRetries); err != nil {
			return err
		} else {
			policies = append(policies, drawn("new", after))
			v.Preview.Text, v.Preview.End, v.Preview.Changed = policy.String(), endText(policy, after), true
		}
	}
	if changed && v.Form == "hold" {
		v.Preview.Text = "hold: failed tasks are not retried until the override ends"
	}
	figure := chart.Delays(policies...)
	figure.Title, figure.Note = "", ""
	v.Preview.Chart = svg("Wait before each retry", figure)
	for i := range max(len(before.Retries), len(after.Retries)) {
		row := delayRow{Failures: i + 1, Now: "–", New: "–"}
		if i < len(before.Retries) {
			row.Now = waitText(before.Retries[i].Delay, before.Retries[i].Delay+before.Retries[i].Jitter)
		}
		if i < len(after.Retries) {
			row.New = waitText(after.Retries[i].Delay, after.Retries[i].Delay+after.Retries[i].Jitter)
		}
		if i < 8 || i == previewRetries-1 {
			v.Preview.Delays = append(v.Preview.Delays, row)
		}
	}
	outage := ops.Outage{Failures: herdTasks, Retries: herdRetries, Seed: 1}
	herd, err := ops.Stampede(ctx, policy, outage)
	if err != nil {
		return err
	}
	picture := chart.Herd(chart.HerdOf{Policy: policy.String(), Retries: herd.Retries, Bucket: herd.Bucket, Load: herd.Load})
	picture.Title, picture.Note = "", ""
	v.Preview.Herd = svg("Retries of 200 tasks that failed together", picture)
	return nil
}

func drawn(name string, s ops.Schedule) chart.Policy {
	p := chart.Policy{Name: name, Limit: chart.Wait{Shortest: s.DelayLimit, Longest: s.WaitLimit}}
	for _, r := range s.Retries {
		p.Waits = append(p.Waits, chart.Wait{Shortest: r.Delay, Longest: r.Delay + r.Jitter})
	}
	return p
}

// endText describes when a task with a policy dies. The schedule can end before that.
func endText(p backoff.Policy, s ops.Schedule) string {
	if s.Most == 0 {
		most, elapsed := words.Count(int64(p.MaxAttempts()), "attempt"), durText(p.MaxElapsed())
		switch {
		case p.MaxAttempts() > 0 && p.MaxElapsed() > 0:
			return fmt.Sprintf("A task dies after %s, or after %s.", most, elapsed)
		case p.MaxAttempts() > 0:
			return fmt.Sprintf("A task dies after %s.", most)
		case p.MaxElapsed() > 0:
			return fmt.Sprintf("A task dies after %s.", elapsed)
		}
		return "A task is retried indefinitely."
	}
	attempts := words.Count(int64(s.Most), "attempt")
	if s.Fewest != s.Most {
		attempts = words.Number(int64(s.Fewest)) + " to " + attempts
	}
	return fmt.Sprintf("A task dies after %s, within %s.", attempts, durText(s.Latest))
}

// weigh returns the effect of a draft on the waiting tasks, and a ramp if the draft causes a retry storm.
func (in *request) weigh(ctx context.Context, d draft, workers []ops.Worker) (*weighed, error) {
	p, age, err := in.profile(ctx, d.Subject)
	if err != nil {
		return nil, err
	}
	o, err := d.override(p)
	if err != nil {
		return nil, err
	}
	effect, err := p.Impact(o, 0)
	if err != nil {
		return nil, err
	}
	w := &weighed{Effect: effect, Drastic: effect.Drastic(askAbove), At: p.At, Age: age}
	if n := len(o.Steps); n > 1 {
		w.Steps = n
	}
	if effect.Herd && d.PerMinute == "" && d.Rampable() {
		w.Ramp = d.proposal(p, effect, workers)
	}
	minutes := func(l ops.Load) []int64 { return l.Minutes[:min(len(l.Minutes), 24*60)] }
	figure := chart.Change("", "", nil, []chart.LoadOf{{Policy: "now", Due: effect.Before.Due, Minutes: minutes(effect.Before)}, {Policy: "new", Due: effect.After.Due, Minutes: minutes(effect.After)}})
	figure.Title, figure.Note, figure.Panels = "", "", figure.Panels[1:]
	w.Chart = svg("Tasks that fall due per minute, with the current and the new policy", figure)
	return w, nil
}

// rampOver is about the longest duration of a proposed ramp.
const rampOver = time.Hour

// proposal returns a ramp to the draft's policy, or nil if there is none. On the ramp, about as many tasks fall due per
// minute as run now, or as many as it takes to end within rampOver.
func (d draft) proposal(p *ops.Profile, e ops.Effect, workers []ops.Worker) *ramp {
	most := max(int64(ops.AttemptRate(workers, d.Subject.Kind)*60), e.Before.Peak, e.Tasks/int64(rampOver/time.Minute), 1)
	if most >= e.After.Peak {
		return nil
	}
	d.PerMinute = strconv.FormatInt(most, 10)
	o, err := d.override(p)
	if err != nil {
		return nil
	}
	after, err := p.Impact(o, 0)
	if err != nil || after.Herd && after.After.Peak > e.After.Peak/2 {
		return nil
	}
	return &ramp{
		PerMinute: most, Steps: len(o.Steps), Takes: o.Steps[len(o.Steps)-1].After, Peak: after.After.Peak,
		URL: link("policy", "subject", d.Subject.String(), "form", d.Form, "override", d.Text, "factor", d.Factor, "until", d.Until, "why", d.Why, "own", d.own(), "per-minute", d.PerMinute, "weigh", "1") + "#weighed",
	}
}

// own is the parameter own of the draft.
func (d draft) own() string {
	if d.IncludeOwn {
		return "1"
	}
	return ""
}

// profile returns the profile of the waiting tasks, at most a minute old.
func (in *request) profile(ctx context.Context, s falldue.Subject) (*ops.Profile, time.Duration, error) {
	if s.Key != "" {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		defer cancel()
		p, err := in.h.ops.ProfileKey(limited, s.Key)
		return p, 0, err
	}
	r := in.h.reads.profile.get(ctx)
	if !r.Known || r.Err != nil {
		return nil, 0, cmp.Or(r.Err, error(mistake("The waiting tasks have not been read yet. Try again.")))
	}
	return r.Value, r.Age, nil
}

// Rows are the nonzero numbers of an effect, with words.
func (w weighed) Rows() (rows []effectRow) {
	immediately, sooner := "become due immediately", "become due sooner"
	if w.Steps > 1 { // a task may be among both
		immediately, sooner = fmt.Sprintf("become due together, in the busiest of the %d steps", w.Steps), "become due sooner, spread over the steps"
	}
	for _, row := range []effectRow{
		{w.Tasks, "tasks wait", ""}, {w.AtOnce, immediately, "warn"}, {w.Sooner, sooner, ""}, {w.Later, "become due later", ""},
		{w.Exhausted, "have no attempt left, and die when they fall due", "bad"}, {w.Unknown, "more have failed under an unknown policy, and might become due", "warn"},
		{w.UnknownExhausted, "of these have no attempt left", "bad"}, {w.Own, "more have a per-task policy, which they keep", ""},
		{w.Kept, "more have a more specific override, which they keep", ""}, {w.AtEnd, "become due when the override ends", "warn"},
	} {
		if row.N > 0 || row.Text == "tasks wait" {
			rows = append(rows, row)
		}
	}
	return rows
}

// effectRow is a number of an effect.
type effectRow struct {
	N           int64
	Text, Class string
}

// Steps are the overrides that the editor offers.
func (v policyView) Steps() []preset {
	subject := v.Subject.String()
	at := func(text string, params ...string) preset {
		return preset{text, link("policy", append([]string{"subject", subject}, params...)...)}
	}
	return []preset{
		at("2× slower", "form", "slow", "factor", "2"), at("4× slower", "form", "slow", "factor", "4"), at("At least 10m", "override", "max(original, 10m)"),
		at("Every 5m with jitter", "override", "5m; jitter 1m"), at("Hold", "form", "hold"), at("Ramp", "form", "ramp"),
	}
}
