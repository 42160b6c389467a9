package dash

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// cause is something that is wrong.
type cause struct {
	Level ops.Level // Attention or Broken
	// Text describes the cause. Since is when the trouble began, if that is known.
	Text  string
	Since time.Time
	// Earlier reports whether the trouble may have begun before Since.
	Earlier bool
	// Advice is the recommended action, and Links lead to it.
	Advice string
	Links  []step
	weight int // orders causes of a level
	// kind is the kind of the failing tasks. others describes several such kinds together, such as "kinds are failing".
	kind, others string
}

// step is a link to a page with an action.
type step struct{ Text, URL string }

// verdict lists the causes of trouble. Without trouble, it has none.
type verdict struct {
	Level  ops.Level
	Text   string // if nothing is wrong
	Causes []cause
	Now    time.Time
}

// state is the input of a verdict.
type state struct {
	ops.Pulse
	Overdue   []ops.Overdue
	Failures  ops.Failures
	Schedules []periodic.Info
	Minutes   []ops.Span // of each kind, of the last hour
	// Errors reports whether the user may see errors of tasks.
	Errors bool
}

// mostOften is a sentence that names the most frequent error.
func (s state) mostOften(text string) string {
	if !s.Errors {
		return ""
	}
	return "Most often: " + text + "."
}

const (
	// A kind with at least endedLeast ended attempts has run recently.
	endedLeast = 5
	// freshDeath is how long the page reports a task's death.
	freshDeath = time.Hour
)

// judge returns the verdict on a state.
func judge(s state) verdict {
	v := verdict{Now: s.At}
	v.Causes = slices.Concat(s.noWorkers(), folded(s.failing()), folded(s.backlog()), s.overdue(), s.unhandled(), folded(s.deaths()), s.workers(), s.late())
	slices.SortStableFunc(v.Causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.weight, a.weight))
	})
	for _, c := range v.Causes {
		v.Level = max(v.Level, c.Level)
	}
	if len(v.Causes) == 0 {
		v.Text = fmt.Sprintf("%s of %s busy on %s. Nothing is overdue, no kind fails, and nothing died in the last hour.",
			words.Number(int64(s.Running())), words.Count(int64(s.Concurrency()), "handler"), words.Count(int64(len(s.Workers)), "worker"))
		if len(s.Workers) == 0 {
			v.Text = "No worker is running, and no task is waiting."
		}
		if s.More {
			v.Text += fmt.Sprintf(" This covers the %s read so far. There are more.", words.Count(int64(s.Lanes()), "lane"))
		}
	}
	return v
}

// At least foldFrom kinds that fail with the same error have one cause together.
const foldFrom = 3

// folded merges the causes of kinds with the same error: one unavailable partner makes many kinds fail.
func folded(list []cause) (few []cause) {
	type group struct {
		level  ops.Level
		advice string // names the error
	}
	groups := map[group][]cause{}
	for _, c := range list {
		groups[group{c.Level, c.Advice}] = append(groups[group{c.Level, c.Advice}], c)
	}
	for _, c := range list {
		key := group{c.Level, c.Advice}
		switch same := groups[key]; {
		case c.Advice == "" || 0 < len(same) && len(same) < foldFrom:
			few = append(few, c)
		case same != nil:
			few = append(few, merged(same))
			groups[key] = nil
		}
	}
	return few
}

// merged returns one cause that replaces the causes of several kinds.
func merged(list []cause) cause {
	c, kinds := list[0], []string{}
	for _, other := range list {
		kinds = append(kinds, other.kind)
		if !other.Since.IsZero() && (c.Since.IsZero() || other.Since.Before(c.Since)) {
			c.Since, c.Earlier = other.Since, other.Earlier
		}
	}
	named := strings.Join(kinds[:min(len(kinds), foldFrom)], ", ")
	if more := len(kinds) - foldFrom; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	c.Text = fmt.Sprintf("%s %s: %s", words.Number(int64(len(kinds))), c.others, named)
	c.Links = []step{{"See the errors", "failures"}, {"Policies", "policies"}}
	return c
}

// waits reports whether tasks wait or run.
func (s state) waits() bool { return s.Lanes() > 0 }

func (s state) noWorkers() []cause {
	if len(s.Workers) > 0 || !s.waits() {
		return nil
	}
	c := cause{Level: ops.Broken, Text: "No worker is running, and tasks are waiting", weight: 9, Advice: "Start a process that calls Queue.Run."}
	for _, w := range s.Lost {
		if w.Seen.After(c.Since) {
			c.Since = w.Seen
			c.Advice = "The last one was " + w.ID + ". Look at its logs, and start a process that calls Queue.Run."
		}
	}
	if first, ok := s.First(); ok && c.Since.IsZero() && first.FirstDue.Before(s.At) {
		c.Since = first.FirstDue
	}
	c.Links = []step{{"Workers", "workers"}}
	return []cause{c}
}

// failing finds the kinds that fail in most of their attempts.
func (s state) failing() (list []cause) {
	for _, k := range ops.RunsByKind(s.Workers) {
		if !k.Failing() {
			continue
		}
		kind := k.Kind
		c := cause{Level: ops.Broken, weight: 5, Text: fmt.Sprintf("%s is failing: %v", kind, k), kind: kind, others: "kinds are failing"}
		if k.Done > 0 {
			c.Level = ops.Attention
		}
		for _, g := range s.Failures.Groups {
			if g.Kind != kind {
				continue
			}
			if c.Advice == "" {
				c.Advice = s.mostOften(g.Error)
			}
			if c.Since.IsZero() || g.First.Before(c.Since) {
				c.Since = g.First
			}
			c.Earlier = c.Earlier || g.Earlier
		}
		if since, earlier := s.failsSince(kind); !since.IsZero() && (c.Since.IsZero() || since.Before(c.Since)) {
			c.Since, c.Earlier = since, earlier
		}
		subject := "kind:" + kind
		c.Links = []step{{"See the errors", link("failures", "kind", kind)}, {"Slow retries down", link("policy", "subject", subject, "form", "slow", "factor", "4")}, {"Hold retries", link("policy", "subject", subject, "form", "hold")}}
		list = append(list, c)
	}
	return list
}

// failsSince returns the first of the last minutes in which most attempts of a kind failed, and whether that is the
// first minute of the history. The time is zero if the history has no such minute.
func (s state) failsSince(kind string) (since time.Time, earlier bool) {
	runs := map[int64]ops.KindRuns{} // by the second at which the minute began
	first := s.At
	for _, m := range s.Minutes {
		if m.At.Before(first) {
			first = m.At
		}
		if m.Kind == kind {
			k := runs[m.At.Unix()]
			k.Done, k.Failed = k.Done+m.Done, k.Failed+m.Failed+m.Dead
			runs[m.At.Unix()] = k
		}
	}
	for at := s.At.Truncate(time.Minute); !at.Before(first); at = at.Add(-time.Minute) {
		switch k := runs[at.Unix()]; {
		case k.Done+k.Failed == 0: // all tasks were backing off
		case k.Failed > k.Done:
			since, earlier = at, at.Equal(first)
		default:
			return since, false
		}
	}
	return since, earlier
}

// A kind with at least backlogLeast tasks that wait for a retry is a cause.
const backlogLeast = 100

// backlog finds the kinds with many tasks waiting for a retry, and without an attempt that ended recently. Their tasks
// back off for longer than workers remember attempts.
func (s state) backlog() (list []cause) {
	recent := map[string]bool{}
	for _, w := range s.Workers {
		for kind, runs := range w.Recent {
			recent[kind] = recent[kind] || runs.Done+runs.Failed >= endedLeast
		}
	}
	waiting := map[string]ops.FailureGroup{}
	for _, g := range s.Failures.Groups { // largest first
		sum, known := waiting[g.Kind]
		if !known {
			sum = g
			sum.Waiting = 0
		}
		if sum.Waiting += g.Waiting; g.First.Before(sum.First) {
			sum.First = g.First
		}
		sum.Earlier = sum.Earlier || g.Earlier
		waiting[g.Kind] = sum
	}
	for _, kind := range sorted(waiting) {
		w := waiting[kind]
		if w.Waiting < backlogLeast || recent[kind] {
			continue
		}
		number := words.Number(int64(w.Waiting))
		if s.Failures.More {
			number += " or more"
		}
		subject := "kind:" + kind
		list = append(list, cause{Level: ops.Attention, weight: 4, Since: w.First, Earlier: w.Earlier, kind: kind, others: "kinds have failed tasks that are waiting for a retry", Text: fmt.Sprintf("%s tasks of kind %s have failed and are waiting for a retry", number, kind), Advice: s.mostOften(w.Error),
			Links: []step{{"See the errors", link("failures", "kind", kind)}, {"See when they run", link("tasks", "kind", kind, "phase", "backing_off", "order", "oldest")}, {"Change the policy", link("policy", "subject", subject)}}})
	}
	return list
}

func (s state) overdue() (list []cause) {
	for _, late := range s.Overdue {
		tasks := words.Count(int64(late.Tasks), "task")
		if late.More {
			tasks = words.Number(int64(late.Tasks)) + " or more tasks"
		}
		c := cause{Level: ops.Attention, Since: late.DueSince, weight: 3, Text: fmt.Sprintf("%s of kind %s in queue %s overdue", tasks, late.Kind, late.Queue)}
		switch h := ops.Handlers(s.Workers, late.Queue, late.Kind); {
		case !late.Stuck():
			continue // they wait for their limit, which is no problem
		case late.HaltedBy != 0:
			c.Text = fmt.Sprintf("%s of kind %s in queue %s stuck behind dead tasks that halt their sequences", tasks, late.Kind, late.Queue)
			c.Advice, c.Links = "Retry or delete the dead task.", []step{{fmt.Sprintf("Task %d", late.HaltedBy), link("task", "id", fmt.Sprint(late.HaltedBy))}}
			list = append(list, c)
			continue
		case h.Busy():
			c.Text += fmt.Sprintf(", and all %s are busy", words.Count(int64(h.Concurrency), "handler"))
			c.Advice = "Run more workers or raise Concurrency. If handlers hang, set KindConfig.Timeout."
		case len(h.Workers) > 0:
			c.Advice = "Handlers are free. Open one of the tasks: its page explains the delay."
		default:
			continue // unhandled reports this kind
		}
		c.Links = []step{{"See the tasks", link("tasks", "queue", late.Queue, "kind", late.Kind, "phase", "due", "order", "oldest")}}
		list = append(list, c)
	}
	return list
}

func (s state) unhandled() (list []cause) {
	if len(s.Workers) == 0 {
		return nil
	}
	for _, k := range ops.Unhandled(s.Queues, s.Workers) {
		c := cause{Level: ops.Broken, weight: 4, Text: fmt.Sprintf("No live worker handles kind %s in queue %s, and tasks are waiting", k.Kind, k.Queue),
			Advice: "Deploy a worker that handles the kind and lists the queue, or cancel the tasks.", Links: []step{{"See the tasks", link("tasks", "queue", k.Queue, "kind", k.Kind, "order", "oldest")}}}
		for _, late := range s.Overdue {
			if late.Queue == k.Queue && late.Kind == k.Kind {
				c.Since = late.DueSince
			}
		}
		list = append(list, c)
	}
	return list
}

// deaths finds the kinds whose tasks died recently.
func (s state) deaths() (list []cause) {
	var kinds []string
	dead := map[string]ops.FailureGroup{}
	for _, g := range s.Failures.Groups {
		if g.Dead == 0 || s.Failures.At.Sub(g.Last) > freshDeath {
			continue
		}
		sum, known := dead[g.Kind]
		if !known {
			kinds, sum = append(kinds, g.Kind), ops.FailureGroup{Error: g.Error, First: g.First}
		}
		if sum.Dead += g.Dead; g.First.Before(sum.First) {
			sum.First = g.First
		}
		sum.Earlier = sum.Earlier || g.Earlier
		dead[g.Kind] = sum
	}
	for _, kind := range kinds {
		d := dead[kind]
		list = append(list, cause{Level: ops.Attention, weight: 2, Since: d.First, Earlier: d.Earlier, kind: kind, others: "kinds have dead tasks", Text: fmt.Sprintf("Kind %s has %s", kind, words.Count(int64(d.Dead), "dead task")),
			Advice: s.mostOften(d.Error),
			Links:  []step{{"See the errors", link("failures", "kind", kind)}, {"Retry them at a rate", link("bulk", "do", "retry", "kind", kind, "state", "dead")}}})
	}
	return list
}

// workers finds lost workers, and workers that cannot apply or read changes.
func (s state) workers() (list []cause) {
	if n := len(s.Lost); n > 0 {
		c := cause{Level: ops.Attention, weight: 1, Text: words.Count(int64(n), "worker") + " stopped without notice in the last hour", Advice: "Their tasks are retried when the leases expire. Look at the logs of these processes.", Links: []step{{"Workers", "workers"}}}
		for _, w := range s.Lost {
			if c.Since.IsZero() || w.Seen.Before(c.Since) {
				c.Since = w.Seen
			}
		}
		list = append(list, c)
	}
	for _, r := range ops.RefusedOverrides(s.Workers) {
		list = append(list, cause{Level: ops.Broken, weight: 2, Text: r.String(), Links: []step{{"Policies", "policies"}}})
	}
	for _, p := range ops.RefusedPauses(s.Workers) {
		list = append(list, cause{Level: ops.Broken, weight: 2, Text: p.String(), Links: []step{{"Workers", "workers"}}})
	}
	for _, w := range s.Workers {
		if w.Unread != "" {
			list = append(list, cause{Level: ops.Broken, weight: 2, Text: "Worker " + w.ID + " cannot read pauses, overrides and cancellations: " + w.Unread, Links: []step{{"Workers", "workers"}}})
		}
	}
	return list
}

func (s state) late() (list []cause) {
	for _, info := range s.Schedules {
		if info.Late() || info.Err != nil {
			c := cause{Level: ops.Attention, weight: 1, Since: info.Next, Text: "Schedule " + info.Name + " has missed its tick", Advice: "No running process defines it. Start one, or remove the schedule.", Links: []step{{"Schedules", "schedules"}}}
			if info.Err != nil {
				c.Text, c.Since = "Schedule "+info.Name+" cannot tick: "+info.Err.Error(), time.Time{}
			}
			list = append(list, c)
		}
	}
	return list
}
