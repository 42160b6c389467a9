package dash

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

const (
	// simulatedMost is the greatest number of policies of a simulation. simulatedBacklog is the greatest number of
	// waiting tasks, since each takes memory. The command simulates more.
	simulatedMost, simulatedBacklog = 4, 200_000
	// simulatedTasks is the greatest number of tasks enqueued during an outage.
	simulatedTasks = 1_000_000
)

// simulateView is what the page of simulations shows.
type simulateView struct {
	// Fields are the values of the form.
	Fields  map[string]string
	Kinds   []string
	Rows    []simulated
	Charts  []template.HTML
	Waiting int64
	Trouble *trouble
	Tasks   int64
	Takes   time.Duration
}

// simulated is a recovery under a policy.
type simulated struct {
	Policy string
	ops.Recovery
}

// simulateFields are the fields of the form with their defaults.
var simulateFields = map[string]string{"kind": "", "policies": "", "outage": "30m", "rate": "10", "handler": "300ms", "handlers": "10", "backlog": ""}

// simulatePage shows how a system recovers from an outage under several policies.
func simulatePage(in *request) (page, error) {
	ctx := in.r.Context()
	p := in.h.reads.pulse.get(ctx)
	v := simulateView{Fields: map[string]string{}, Trouble: troubleOf(p.Err)}
	_, v.Kinds = names(p.Value)
	kind := in.query.Get("kind")
	defaults := map[string]string{}
	if handlers := ops.Capacity(p.Value.Workers, kind); handlers > 0 {
		defaults["handlers"] = strconv.Itoa(handlers)
	}
	if pace := ops.PaceOf(p.Value.Workers).Of(kind); pace > 0 {
		defaults["rate"] = strconv.FormatFloat(pace, 'g', 3, 64)
	}
	if known := in.h.kindPolicy(kind, p.Value, nil, ops.PaceOf(p.Value.Workers)); known.Policy != "" {
		defaults["policies"] = known.Policy + "\n"
	}
	for name, value := range simulateFields {
		if v.Fields[name] = cmp.Or(defaults[name], value); in.query.Has(name) {
			v.Fields[name] = in.query.Get(name)
		}
	}
	if in.query.Get("do") != "" {
		if err := v.simulate(in); err != nil {
			v.Trouble, v.Rows = troubleOf(err), nil
		}
	}
	v.Tasks, v.Takes, _ = in.h.ops.ProfileTime(ctx)
	return page{Title: "Simulate an outage", Nav: "forecast", Regions: []region{
		{ID: "scenario", Template: "scenario", Data: v, Fixed: true},
		{ID: "recovery", Template: "recovery", Data: v},
	}}, nil
}

// scenario reads the form.
func (v *simulateView) scenario() (s ops.Scenario, policies []string, err error) {
	s.Seed = 1
	for name, d := range map[string]*time.Duration{"outage": &s.Outage, "handler": &s.Handler} {
		if *d, err = ops.ParseDuration(v.Fields[name]); err != nil {
			return s, nil, mistake(fmt.Sprintf("%s: %v", name, err))
		}
	}
	if s.PerSecond, err = strconv.ParseFloat(v.Fields["rate"], 64); err != nil {
		return s, nil, mistake("New tasks per second: " + strconv.Quote(v.Fields["rate"]) + " is not a number.")
	}
	if s.Workers, err = strconv.Atoi(v.Fields["handlers"]); err != nil {
		return s, nil, mistake("Handlers: " + strconv.Quote(v.Fields["handlers"]) + " is not a number.")
	}
	for line := range strings.Lines(v.Fields["policies"]) {
		if line = strings.TrimSpace(line); line != "" {
			policies = append(policies, line)
		}
	}
	if len(policies) > simulatedMost {
		return s, nil, mistake(fmt.Sprintf("The page simulates up to %d policies, not %d.", simulatedMost, len(policies)))
	}
	if n := s.PerSecond * s.Outage.Seconds(); n > simulatedTasks {
		return s, nil, mistake(fmt.Sprintf("%s tasks are enqueued during the outage. The page simulates up to %s; \"falldue simulate\" has no such limit.", words.Number(int64(n)), words.Number(simulatedTasks)))
	}
	return s, policies, nil
}

func (v *simulateView) simulate(in *request) error {
	s, policies, err := v.scenario()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(in.r.Context(), readLimit)
	defer cancel()
	if v.Fields["backlog"] != "" {
		p, _, err := in.profile(ctx, falldue.Subject{})
		if err != nil {
			return err
		}
		if p.Tasks > simulatedBacklog {
			return mistake(fmt.Sprintf("%s tasks wait. The page simulates up to %s; \"falldue simulate --backlog\" takes more.", words.Number(p.Tasks), words.Number(simulatedBacklog)))
		}
		if s.Backlog, err = p.Backlog(v.Fields["kind"]); err != nil {
			return mistake(strings.TrimPrefix(err.Error(), "ops: "))
		}
		v.Waiting = s.Backlog.Tasks
	} else if len(policies) == 0 {
		return mistake("Enter at least one policy, or start with the waiting tasks.")
	}
	// A simulation takes processor time, not database time. It still takes a slot of the reads, which limits both.
	select {
	case in.h.reads.slots <- struct{}{}:
		defer func() { <-in.h.reads.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Backlog != nil {
		r, err := ops.SimulateBacklog(ctx, s)
		if err != nil {
			return mistake(strings.TrimPrefix(err.Error(), "ops: "))
		}
		v.Rows = append(v.Rows, simulated{"the policies in effect now", r})
	}
	for _, text := range policies {
		policy, err := backoff.Parse(text)
		if err != nil {
			return mistake(strings.TrimPrefix(err.Error(), "falldue: "))
		}
		r, err := ops.Simulate(ctx, policy, s)
		switch {
		case ctx.Err() != nil:
			return mistake("The simulation takes longer than 5s. Make the outage shorter, or use \"falldue simulate\".")
		case err != nil:
			return mistake(text + ": " + strings.TrimPrefix(err.Error(), "ops: "))
		}
		v.Rows = append(v.Rows, simulated{text, r})
	}
	v.draw(s)
	return nil
}

// draw draws the attempts in each minute, all on one scale.
func (v *simulateView) draw(s ops.Scenario) {
	longest, most := 0, 0
	for _, r := range v.Rows {
		longest, most = max(longest, len(r.Load)), max(most, r.Peak)
	}
	for _, r := range v.Rows {
		one := chart.Series{Name: "attempts", Style: chart.Steps, Step: 60, Filled: true}
		for minute, n := range r.Load {
			one.Points = append(one.Points, chart.Point{X: float64(minute * 60), Y: float64(n)})
		}
		plot := chart.Plot{Title: r.Policy, Series: []chart.Series{one}, Height: 100,
			X: chart.Axis{Label: "since the start of the outage, which lasts " + durText(s.Outage), Unit: chart.Seconds, To: float64(longest * 60)},
			Y: chart.Axis{Unit: chart.Count, To: roundUp(most)}}
		v.Charts = append(v.Charts, svg("Attempts per minute under "+r.Policy, chart.Figure{Panels: []chart.Panel{plot}}))
	}
}

// roundUp returns the smallest number that is at least n and is 1, 2 or 5 times a power of ten.
func roundUp(n int) float64 {
	for power := 1; ; power *= 10 {
		for _, digit := range []int{1, 2, 5} {
			if digit*power >= n {
				return float64(digit * power)
			}
		}
	}
}
