package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// whyDue returns when a task falls due, and the limit of its attempts. If the task has a
// per-task policy, it returns that, too.
func (o *Ops) whyDue(ctx context.Context, t falldue.TaskInfo, known snapshot) (due WhyDue, most int, own *WhyPolicy, err error) {
	due = WhyDue{
		Anchor: t.UpdatedAt, Attempts: t.Attempts, Now: t.Now,
		Scheduled: t.State == falldue.StateOpen && t.Attempts == 0 && t.AttemptedAt.IsZero() && t.UpdatedAt.After(t.CreatedAt), Snoozed: t.State == falldue.StateSnoozed,
	}
	most = t.MaxAttempts
	if t.ClaimedBy == "" && t.State == falldue.StateOpen && t.Attempts > 0 {
		attempts, err := o.queue.Attempts(ctx, t.ID)
		if err != nil {
			return due, most, nil, err
		}
		if n := len(attempts); n > 0 && attempts[n-1].Fence == t.Fence {
			due.Failed = attempts[n-1].FinishedAt
			due.Jitter = max(t.UpdatedAt.Sub(due.Failed), 0)
		}
	}
	if override, ok := known.Override(t); ok {
		due.Override = &override
	}
	add := func(code backoff.Policy, list []span, workers []string, refused string) {
		r, p := dueRule(t, code, list)
		r.Workers, r.Refused = workers, refused
		due.Rules = append(due.Rules, r)
		if t.MaxAttempts == 0 && (most == 0 || p.MaxAttempts() > most) {
			most = p.MaxAttempts()
		}
	}
	rule := func(p backoff.Policy, holders []string) {
		applying, refusing := due.appliedBy(t, p, known.workers, holders)
		if len(refusing) == 0 || len(applying) > 0 {
			add(p, known.spansOver(t, p, t.Now), applying, "")
		}
		for _, r := range refusing {
			held, err := backoff.Parse(r.Holds)
			if r.Holds == "" || err != nil {
				held = p
			}
			add(p, []span{{policy: held}}, r.Workers, r.Error)
		}
	}
	p, given := known.given(t.Kind, t.Policy)
	switch {
	case t.Policy != "":
		own = &WhyPolicy{Key: t.Policy, Err: known.Unreadable[t.Policy]}
		if own.Err != nil {
			return due, most, own, nil
		}
		own.Text = p.String()
		rule(p, nil)
	case given:
		rule(p, nil)
	default:
		for _, kp := range KindPolicies(known.workers)[t.Kind] {
			if p, err := backoff.Parse(kp.Policy); err == nil { // or a newer release has it
				rule(p, kp.Workers)
			}
		}
	}
	if len(due.Rules) == 0 && (t.State == falldue.StateSnoozed || t.Attempts == 0) { // no delay, whatever the policy
		due.Rules = []DueRule{{At: t.UpdatedAt}}
	}
	slices.SortStableFunc(due.Rules, func(a, b DueRule) int { return a.At.Compare(b.At) })
	return due, most, own, nil
}

// appliedBy returns which workers apply the override that holds for a task whose own policy is p,
// and which ones refuse the override. The workers are holders, or if holders is nil the workers that handle
// the task. If none of them refuses, it returns holders.
func (c WhyDue) appliedBy(t falldue.TaskInfo, p backoff.Policy, workers []Worker, holders []string) (applying []string, refusing []RefusedOverride) {
	if c.Override == nil {
		return holders, nil
	}
	for _, w := range workers {
		if !w.Live() || holders == nil && !w.Handles(t.Queue, t.Kind) || holders != nil && !slices.Contains(holders, w.ID) {
			continue
		}
		if r, refused := w.refusal(c.Override.String(), p.String()); refused {
			refusing = addRefused(refusing, r)
		} else {
			applying = append(applying, w.ID)
		}
	}
	if len(refusing) == 0 {
		return holders, nil
	}
	return applying, refusing
}

// dueRule returns when a task falls due under policies that hold one after the other, and the
// policy of them that holds then. Without overrides code would hold.
func dueRule(t falldue.TaskInfo, code backoff.Policy, list []span) (DueRule, backoff.Policy) {
	if t.State != falldue.StateOpen || t.Attempts == 0 { // no delay
		p := policyAt(list, latest(t.UpdatedAt, t.Now))
		return DueRule{Policy: p.String(), At: t.UpdatedAt}, p
	}
	at, in := dueSpan(list, t.UpdatedAt, t.Attempts)
	delay, _ := in.policy.Wait(int64(t.Attempts))
	if at.Equal(dueUnder([]span{{policy: code}}, t.UpdatedAt, t.Attempts)) { // the overrides do not concern it
		in.from = time.Time{}
	}
	return DueRule{Policy: in.policy.String(), Delay: delay, At: at, From: in.from}, in.policy
}

// whyExpiry returns the time by which a task must start. It is zero if there is none: a worker may know a policy
// without a limit, and a task that has started does not expire.
func whyExpiry(t falldue.TaskInfo, due WhyDue) WhyExpiry {
	e := WhyExpiry{Now: t.Now}
	if t.State != falldue.StateOpen || t.Attempts > 0 {
		return e
	}
	for _, rule := range due.Rules {
		p, err := backoff.Parse(rule.Policy)
		if err != nil || p.StartWithin() == 0 {
			e.At = time.Time{}
			break
		}
		e.At = latest(e.At, t.UpdatedAt.Add(p.StartWithin()))
	}
	if !t.ExpireAt.IsZero() && (e.At.IsZero() || t.ExpireAt.Before(e.At)) {
		e.At, e.Own = t.ExpireAt, true
	}
	return e
}

// readBy learns which workers that handle a task cannot read its policy.
func (c *WhyPolicy) readBy(t falldue.TaskInfo, workers []Worker) {
	for _, w := range workers {
		if !w.Live() || !w.Handles(t.Queue, t.Kind) {
			continue
		}
		c.Handling++
		if text, unread := w.UnreadPolicies[c.Key]; unread {
			c.Unread, c.UnreadError = append(c.Unread, w.ID), cmp.Or(c.UnreadError, text)
		}
	}
}
