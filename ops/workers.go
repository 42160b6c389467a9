package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/words"
)

// Worker describes a process that runs [falldue.Queue.Run], as of its last heartbeat. A worker sends a heartbeat every
// 15 seconds.
type Worker struct {
	// ID is the ID of the worker, see [falldue.TaskInfo.ClaimedBy].
	ID string
	// Host and PID identify the process. Release is the version of the program's module, or the revision from which the
	// program was built, as far as the build has this information. Library is the version of falldue.
	Host    string
	PID     int
	Release string
	Library string
	// Queues are the queues that the worker works on, by name or pattern ([falldue.Config]), and Kinds are the kinds that
	// it handles.
	Queues map[string]WorkerQueue
	Kinds  map[string]WorkerKind
	// Running is how many handlers ran when the worker was last seen. Done is how many tasks had succeeded since the
	// worker started, and Failed is how many attempts had failed.
	Running      int
	Done, Failed int64
	// Recent counts, by kind, the runs that ended in the last RecentTime (up to five minutes) before the worker was last
	// seen. Kinds without such a run are left out.
	Recent     map[string]Runs
	RecentTime time.Duration
	// Latest and LatestTime are the same for only the last 30 to 45 seconds before the worker was last seen.
	Latest     map[string]Runs
	LatestTime time.Duration
	// Longest are up to 100 running tasks of the worker, the longest running first, when the worker was last seen.
	Longest []RunningTask
	// Stopping reports whether the worker claims no more tasks, because it is shutting down.
	Stopping bool
	// Applied maps the subjects of the newest overrides of policies that the worker applies, up to 100, to the times when
	// these overrides were set: see [Override.AppliedBy].
	Applied map[string]time.Time
	// Refused are the overrides of policies that the worker cannot apply. Unread is the error if the worker cannot read
	// pauses, overrides of policies and cancels, or "". The worker then applies the pauses and overrides that it read
	// last.
	Refused []RefusedOverride
	Unread  string
	// UnreadPolicies has the reasons why the worker cannot read per-task policies, by the keys of up to 20 such policies.
	// The worker claims no tasks with these policies.
	UnreadPolicies map[string]string
	// RefusedPauses has the reasons why the worker cannot apply pauses, by the subjects of up to 20 such pauses. A newer
	// release has set these pauses. The worker still runs the tasks that these pauses match.
	RefusedPauses map[string]string
	// Overtime describes, by kind, the handlers that have not returned within 10 seconds after their timeout.
	Overtime map[string]string
	// UnusedLimits has the limits per key that have counted none of the worker's tasks, by kind or queue, such as "kind
	// charge". The tasks had no keys, or their keys had no part that the limit counts.
	UnusedLimits map[string]string
	// Started is when the worker started, Seen is when it last sent a heartbeat, and Now is when the list of workers was
	// read. All times are by the database's clock.
	Started, Seen, Now time.Time
	// Unreadable is the reason why the worker's queues and kinds are not known, or nil.
	Unreadable error
}

// RefusedOverride is an override of policies that workers cannot apply, see
// [Ops.SetPolicy].
type RefusedOverride struct {
	// Subject is the subject of the override, such as kind:charge.
	Subject string
	// Own is the policy that the override should have changed, from the code or per task, and Holds is the policy that is
	// in effect instead. Both are "" if the workers cannot read the override. The earlier policy then stays in effect.
	Own, Holds string
	Error      string
	// Workers are the IDs of the workers.
	Workers []string
}

// RunningTask is a task that a worker has claimed and has not ended yet. Its handler runs, or is about to run.
type RunningTask struct {
	ID          int64
	Kind, Queue string
	Attempt     int
	Since       time.Time // when the task was claimed, by the database's clock
	Worker      string    // the ID of the worker
}

// LongestRunning returns the running tasks of live workers, the longest running first: up to 100 of each worker, as of
// its last heartbeat.
func LongestRunning(workers []Worker) (list []RunningTask) {
	for _, w := range workers {
		if w.Live() {
			list = append(list, w.Longest...)
		}
	}
	slices.SortFunc(list, func(a, b RunningTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Runs counts runs: tasks that succeeded, and attempts that failed.
type Runs struct{ Done, Failed int64 }

// WorkerQueue is a queue that a worker works on.
type WorkerQueue struct {
	// Concurrency is how many handlers may run concurrently, and Running is how many ran when the worker was last seen.
	Concurrency, Running int
	// Limits are the limits that the worker applies in the queue, such as AtMost(20).
	Limits []string
	limits []store.Limit
}

// WorkerKind is a kind that a worker handles.
type WorkerKind struct {
	// Policy is the text of the policy that the worker was built with, which backoff.Parse
	// reads.
	Policy string
	// Timeout is how long the kind's handler can run, or 0 for no limit.
	Timeout time.Duration
	// Limits are the limits that the worker applies to tasks of the kind, such as AtMost(20).
	Limits []string
	limits []store.Limit
}

// Live reports whether the worker was seen within the last minute. Otherwise it has died, or cannot reach the database.
func (w Worker) Live() bool { return w.Now.Sub(w.Seen) < store.WorkerLife }

// Concurrency returns how many handlers of the worker may run concurrently, in all its queues.
func (w Worker) Concurrency() (n int) {
	for _, q := range w.Queues {
		n += q.Concurrency
	}
	return n
}

// Pace is how many tasks per second live workers have done recently.
type Pace struct {
	PerSecond float64            // the pace of all kinds together
	Kinds     map[string]float64 // the pace of each kind
	// Over is the length of the period in which the tasks were counted, up to five minutes. If the periods of the workers
	// differ, Over is the longest.
	Over time.Duration
}

// Of returns the pace of a kind, in tasks a second, or the pace of all kinds if kind is "".
func (p Pace) Of(kind string) float64 {
	if kind == "" {
		return p.PerSecond
	}
	return p.Kinds[kind]
}

// PaceOf returns the pace of the live workers of a list.
func PaceOf(workers []Worker) Pace {
	p := Pace{Kinds: map[string]float64{}}
	for _, w := range workers {
		if !w.Live() || w.RecentTime <= 0 {
			continue
		}
		p.Over = max(p.Over, w.RecentTime)
		for kind, runs := range w.Recent {
			perSecond := float64(runs.Done) / w.RecentTime.Seconds()
			p.Kinds[kind] += perSecond
			p.PerSecond += perSecond
		}
	}
	return p
}

// AttemptRate returns how many attempts per second the live workers of a list have ended recently, including failed
// attempts. kind "" means all kinds.
func AttemptRate(workers []Worker, kind string) (perSecond float64) {
	for _, w := range workers {
		if !w.Live() || w.RecentTime <= 0 {
			continue
		}
		for name, runs := range w.Recent {
			if kind == "" || name == kind {
				perSecond += float64(runs.Done+runs.Failed) / w.RecentTime.Seconds()
			}
		}
	}
	return perSecond
}

// Workers lists the workers in the order in which they started. A worker that stops removes itself from the list. A
// worker that dies stays in the list for an hour, with [Worker.Live] false. A worker that cannot write to the table of
// workers runs tasks, but is not in the list.
func (o *Ops) Workers(ctx context.Context) ([]Worker, error) {
	rows, err := o.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Worker, len(rows))
	for k, r := range rows {
		list[k] = newWorker(r)
	}
	return list, nil
}

func newWorker(r store.StoredWorker) Worker {
	w := Worker{
		ID: r.ID, Running: r.Running, Done: r.Done, Failed: r.Failed, Queues: map[string]WorkerQueue{}, Kinds: map[string]WorkerKind{},
		Started: store.Time(r.Started), Seen: store.Time(r.Seen), Now: store.Time(r.Now),
	}
	var recent store.Recent
	if r.Recent.Valid && json.Unmarshal([]byte(r.Recent.V), &recent) == nil { // else nothing is known of them
		w.Recent, w.RecentTime = runsOf(recent.Kinds), recent.Over
		for _, t := range recent.Longest {
			w.Longest = append(w.Longest, RunningTask{ID: t.ID, Kind: t.Kind, Queue: t.Queue, Attempt: t.Attempt, Since: store.Time(t.Since), Worker: r.ID})
		}
		w.Latest, w.LatestTime = runsOf(recent.Latest), recent.LatestOver
	}
	var info store.WorkerInfo
	if err := json.Unmarshal([]byte(r.Info), &info); err != nil {
		w.Unreadable = fmt.Errorf("ops: the heartbeat of worker %.100q cannot be read: %w", r.ID, err)
		return w
	}
	w.Host, w.PID, w.Release, w.Library, w.Stopping = info.Host, info.PID, info.Release, info.Library, info.Stopping
	w.Unread, w.UnreadPolicies, w.RefusedPauses, w.Overtime, w.UnusedLimits = info.Unread, info.Policies, info.RefusedPauses, info.Overtime, info.UnusedLimits
	w.Applied = map[string]time.Time{}
	for subject, at := range info.Applied {
		w.Applied[subject] = store.Time(at)
	}
	for _, r := range info.Refused {
		w.Refused = append(w.Refused, RefusedOverride{r.Subject, r.Own, r.Holds, r.Error, []string{w.ID}})
	}
	for name, q := range info.Queues {
		w.Queues[name] = WorkerQueue{q.Concurrency, recent.Running[name], limitTexts(q.Limits), q.Limits}
	}
	for name, k := range info.Kinds {
		w.Kinds[name] = WorkerKind{k.Policy, k.Timeout, limitTexts(k.Limits), k.Limits}
	}
	return w
}

func runsOf(kinds map[string]store.Runs) map[string]Runs {
	list := map[string]Runs{}
	for kind, runs := range kinds {
		list[kind] = Runs(runs)
	}
	return list
}

func limitTexts(limits []store.Limit) (list []string) {
	for _, l := range limits {
		list = append(list, l.Text)
	}
	return list
}

// KindPolicy is a policy that live workers have for a kind.
type KindPolicy struct {
	Policy string
	// Workers are the IDs of the workers that have the policy, and Releases are their releases.
	Workers, Releases []string
}

// KindPolicies returns the policies that live workers have for each kind, the policy of most workers first. A kind has
// several policies while workers of several releases handle it. Each worker then applies its own policy when it polls.
func KindPolicies(workers []Worker) map[string][]KindPolicy {
	kinds := map[string][]KindPolicy{}
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		for kind, k := range w.Kinds {
			list := kinds[kind]
			n := slices.IndexFunc(list, func(p KindPolicy) bool { return p.Policy == k.Policy })
			if n < 0 {
				list, n = append(list, KindPolicy{Policy: k.Policy}), len(list)
			}
			list[n].Workers = append(list[n].Workers, w.ID)
			if w.Release != "" && !slices.Contains(list[n].Releases, w.Release) {
				list[n].Releases = append(list[n].Releases, w.Release)
			}
			kinds[kind] = list
		}
	}
	for _, list := range kinds {
		slices.SortFunc(list, func(a, b KindPolicy) int {
			return cmp.Or(cmp.Compare(len(b.Workers), len(a.Workers)), cmp.Compare(a.Policy, b.Policy))
		})
	}
	return kinds
}

// RefusedOverrides returns the overrides of policies that live workers cannot apply, sorted by their subjects. Each
// override has the IDs of the workers that cannot apply it.
func RefusedOverrides(workers []Worker) (list []RefusedOverride) {
	for _, w := range workers {
		if w.Live() {
			for _, r := range w.Refused {
				list = addRefused(list, r)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b RefusedOverride) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Own, b.Own))
	})
	return list
}

// addRefused adds the overrides that workers refuse to a list. The list has each pair of an override and a reason once.
func addRefused(list []RefusedOverride, r RefusedOverride) []RefusedOverride {
	n := slices.IndexFunc(list, func(o RefusedOverride) bool {
		return o.Subject == r.Subject && o.Own == r.Own && o.Holds == r.Holds && o.Error == r.Error
	})
	if n < 0 {
		r.Workers = slices.Clone(r.Workers)
		return append(list, r)
	}
	list[n].Workers = append(list[n].Workers, r.Workers...)
	return list
}

// String names the workers that cannot apply the override, and the reason.
func (r RefusedOverride) String() string {
	instead := "the earlier policy stays in effect"
	if r.Holds != "" {
		instead = fmt.Sprintf("%q stays in effect", r.Holds)
	}
	return fmt.Sprintf("%s cannot apply the policy override for %s, so %s there (%s): %s", words.Count(int64(len(r.Workers)), "worker"), r.Subject, instead, words.Names(r.Workers), r.Error)
}

// refusal returns the worker's report about an override that it cannot apply to the policy own.
func (w Worker) refusal(subject, own string) (RefusedOverride, bool) {
	n := slices.IndexFunc(w.Refused, func(r RefusedOverride) bool { return r.Subject == subject && (r.Own == "" || r.Own == own) })
	if n < 0 {
		return RefusedOverride{}, false
	}
	return w.Refused[n], true
}

// KindReleases describes a kind for which live workers have several policies, as during a deploy. The policy of most
// workers is first.
type KindReleases struct {
	Kind     string
	Policies []KindPolicy
}

// Releases returns the kinds with waiting tasks for which live workers have several policies, as [Policies.Releases]
// does: only the given kind, or all such kinds if kind is "". The profile uses the first policy of each.
func (p *Profile) Releases(kind string) (list []KindReleases) {
	kinds := []string{kind}
	if kind == "" {
		kinds = nil
		for _, g := range p.groups {
			kinds = append(kinds, g.Kind)
		}
		slices.Sort(kinds)
	}
	for _, kind := range slices.Compact(kinds) {
		if policies := p.policies.Releases(kind); len(policies) > 1 {
			list = append(list, KindReleases{kind, policies})
		}
	}
	return list
}

// QueueKind is a kind in a queue.
type QueueKind struct{ Queue, Kind string }

// Unhandled lists, in order, each kind that has waiting or blocked tasks in a queue and that no live worker handles in
// that queue. Only workers that send heartbeats count.
func Unhandled(queues []Queue, workers []Worker) (list []QueueKind) {
	for _, q := range queues {
		kinds := slices.Concat(q.Kinds, q.Blocked)
		slices.Sort(kinds)
		for _, kind := range slices.Compact(kinds) {
			handled := slices.ContainsFunc(workers, func(w Worker) bool { return w.Live() && w.Handles(q.Name, kind) })
			if !handled {
				list = append(list, QueueKind{q.Name, kind})
			}
		}
	}
	slices.SortFunc(list, func(a, b QueueKind) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind)) })
	return list
}

// Handles reports whether the worker works on a queue and has a handler of a kind. A worker
// that is stopping does not.
func (w Worker) Handles(queue, kind string) bool {
	_, works := w.Queue(queue)
	_, handles := w.Kinds[kind]
	return works && handles && !w.Stopping
}

// Queue returns the settings of a queue on the worker, which are stored under the queue's name or under the longest
// pattern that matches the queue. Queue returns false if the worker does not work on the queue. All queues that match a
// pattern share its handlers.
func (w Worker) Queue(name string) (WorkerQueue, bool) {
	found, works := pattern.Find(w.Queues, name)
	q := w.Queues[found]
	q.limits = store.QueueLimits(name, q.limits)
	return q, works
}

// QueueNames returns the names and patterns of the queues that the worker works on, sorted.
func (w Worker) QueueNames() []string { return slices.Sorted(maps.Keys(w.Queues)) }

// KindNames returns the names of the kinds that the worker handles, sorted.
func (w Worker) KindNames() []string { return slices.Sorted(maps.Keys(w.Kinds)) }
