package main

import (
	"fmt"
	"slices"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

// picture returns a policy as pictures show it.
func (p preview) picture() chart.Policy {
	policy := chart.Policy{Name: p.text, Limit: chart.Wait{Shortest: p.DelayLimit, Longest: p.WaitLimit}}
	for _, r := range p.Retries {
		policy.Waits = append(policy.Waits, chart.Wait{Shortest: r.Delay, Longest: r.Delay + r.Jitter})
	}
	policy.End = fmt.Sprintf("Not given up after %s", counted(len(p.Retries), "retry"))
	if p.Most > 0 {
		policy.End = fmt.Sprintf("Given up after %s, within %s", attemptsText(p.Schedule), chart.Duration(p.Latest))
	}
	return policy
}

// drawPreviews draws the waits of policies.
func drawPreviews(previews []preview) chart.Figure {
	var policies []chart.Policy
	for _, p := range previews {
		policies = append(policies, p.picture())
	}
	return chart.Delays(policies...)
}

// picture returns a herd as pictures show it.
func (h herds) picture() chart.HerdOf {
	of := chart.HerdOf{Policy: h.policy, Retries: h.with.Retries, Bucket: h.with.Bucket, Load: h.with.Load}
	if !slices.Equal(h.with.Load, h.without.Load) {
		of.Steady = h.without.Load
	}
	return of
}

// pictureRetries is the number of retries whose waits the picture of a diff shows.
const pictureRetries = 25

// saveDiff draws the policy that is in effect for a kind alongside others.
func (d *differ) saveDiff(now backoff.Policy, list []candidate) error {
	first := list[0]
	var policies []chart.Policy
	for i, p := range append([]backoff.Policy{now}, policiesOf(list)...) {
		name := "now: " + first.holds
		if i > 0 {
			name = list[i-1].text
		}
		schedule, err := ops.Preview(p, pictureRetries)
		if err != nil {
			return err
		}
		policies = append(policies, preview{name, schedule}.picture())
	}
	loads := []chart.LoadOf{{Policy: policies[0].Name, Due: first.Before.Due, Minutes: first.Before.Minutes}}
	note := fmt.Sprintf("%s of this kind wait.", words.Count(first.Tasks, "task"))
	for _, c := range list {
		loads = append(loads, chart.LoadOf{Policy: c.text, Due: c.After.Due, Minutes: c.After.Minutes})
		note += fmt.Sprintf(" Under %s, %s would be due immediately, %s sooner, %s later.", c.text, grouped(c.AtOnce), grouped(c.Sooner), grouped(c.Later))
	}
	return d.picture.save(chart.Change(first.Kind, note, policies, loads))
}

func policiesOf(list []candidate) (policies []backoff.Policy) {
	for _, c := range list {
		policies = append(policies, c.policy)
	}
	return policies
}
