package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/sqlgen"
)

// checkWorkers looks for kinds without a live worker, and for differences between workers.
func (o *Ops) checkWorkers(ctx context.Context) ([]Finding, error) {
	workers, err := o.Workers(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := o.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	attention := func(advice, format string, args ...any) {
		findings = append(findings, Finding{Level: Attention, Text: fmt.Sprintf(format, args...), Advice: advice})
	}
	live, handlers := 0, 0
	for _, w := range workers {
		switch {
		case w.Unreadable != nil:
			attention("upgrade this command, or correct the row in the table of workers", "%v", w.Unreadable)
		case !w.Live():
			attention("check whether its process runs and reaches the database; its tasks are retried when their leases have expired", "worker %s was last seen %v ago", w.ID, w.Now.Sub(w.Seen).Round(1e9))
		case w.Unread != "":
			attention("grant its user permission to read the table of changes (docs/rights.md); until then it applies what it read last",
				"worker %s cannot read pauses, overrides and cancellations: %s", w.ID, w.Unread)
		default:
			live, handlers = live+1, handlers+w.Concurrency()
		}
	}
	for _, u := range Unhandled(queues, workers) {
		attention("run workers that have a handler of the kind and list the queue; if some do, grant them permission to write to the table of workers",
			"tasks of kind %s wait in queue %s, and no live worker handles them there", u.Kind, u.Queue)
	}
	for _, r := range RefusedOverrides(workers) {
		attention("clear the override with \"falldue policy clear\", or set one that all workers can apply; upgrade workers that are too old to read it", "%v", r)
	}
	for _, p := range RefusedPauses(workers) {
		attention("upgrade these workers, or end the pause with the release that set it", "%v", p)
	}
	for _, w := range workers {
		for _, key := range slices.Sorted(maps.Keys(w.UnreadPolicies)) {
			if w.Live() {
				attention("upgrade the worker, or enqueue a task with that policy again", "worker %s cannot read per-task policy %s, and does not run its tasks: %s", w.ID, key, w.UnreadPolicies[key])
			}
		}
	}
	for _, l := range unusedLimits(workers) {
		attention("check the part's name in PerKey, and that tasks get a key (KeyedBy, or EnqueueOptions.Key); \"falldue why ID\" shows a task's key",
			"%s of %s has no effect on %s: no task has the key, or the part of a key, that it counts", l.text, l.owner, words.Names(l.workers))
	}
	policies := KindPolicies(workers)
	for _, kind := range slices.Sorted(maps.Keys(policies)) {
		list := policies[kind]
		if len(list) > 1 {
			attention("finish the deployment; until then a task runs as soon as it is due under one of the policies",
				"workers have %d policies for kind %s: %s", len(list), kind, policyTexts(list))
		}
		for _, p := range list {
			if _, err := backoff.Parse(p.Policy); err != nil {
				attention("upgrade this command to the release of the workers", "the policy of kind %s of %s cannot be read: %v", kind, strings.Join(p.Workers, ", "), err)
			}
		}
	}
	if len(findings) > 0 {
		return findings, nil
	}
	if live == 0 {
		return fine("no worker has sent a heartbeat, and no task waits"), nil
	}
	return fine("%s with %s, which handle all waiting tasks", words.Count(int64(live), "live worker"), words.Count(int64(handlers), "handler")), nil
}

func policyTexts(list []KindPolicy) string {
	texts := make([]string, len(list))
	for k, p := range list {
		texts[k] = fmt.Sprintf("%q (%s", p.Policy, words.Count(int64(len(p.Workers)), "worker"))
		if len(p.Releases) > 0 {
			texts[k] += " of " + strings.Join(p.Releases, ", ")
		}
		texts[k] += ")"
	}
	return strings.Join(texts, ", ")
}

// announcedFormulas returns the delays of the policies that live workers announce, by the
// names under which they are reported.
func (o *Ops) announcedFormulas(ctx context.Context) map[string]sqlgen.Formula {
	formulas := map[string]sqlgen.Formula{}
	workers, err := o.Workers(ctx)
	if err != nil {
		return formulas // checkWorkers reports this
	}
	for kind, list := range KindPolicies(workers) {
		for _, p := range list {
			if policy, err := backoff.Parse(p.Policy); err == nil {
				formulas[fmt.Sprintf("the policy %q of kind %s on %s", p.Policy, kind, strings.Join(p.Workers, ", "))] = policy.Delay()
			}
		}
	}
	return formulas
}

// unusedLimit is a limit per key that has counted no task of some workers.
type unusedLimit struct {
	owner, text string
	workers     []string
}

// unusedLimits returns the limits that have counted no task of the live workers.
func unusedLimits(workers []Worker) (list []unusedLimit) {
	for _, w := range workers {
		for _, owner := range slices.Sorted(maps.Keys(w.UnusedLimits)) {
			if !w.Live() {
				continue
			}
			text := w.UnusedLimits[owner]
			n := slices.IndexFunc(list, func(l unusedLimit) bool { return l.owner == owner && l.text == text })
			if n < 0 {
				n = len(list)
				list = append(list, unusedLimit{owner: owner, text: text})
			}
			list[n].workers = append(list[n].workers, w.ID)
		}
	}
	return list
}
