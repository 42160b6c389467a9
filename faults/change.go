package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

const (
	changedName = "changed"
	// One enqueue in changeEvery is of a group of jobs that are changed together, or is such a
	// change of the last group, in runs that have limited jobs, too. A group has changesEach.
	changeEvery = 12
	changesEach = 4
)

// change is a change of all jobs of a group.
type change string

const (
	cancels          change = "cancel"
	retriesDead      change = "retry-dead"
	retriesCancelled change = "retry-cancelled"
	deletes          change = "delete"
)

// group is the jobs that an enqueuer enqueued together and changes together.
type group struct {
	name    string
	changes int
}

// groupMark is in the names of groups, and in no name of a process. The keys of the jobs of a
// group are made of its name.
const groupMark = "/changed"

// groupOf returns the name of the group of a job, or "".
func groupOf(key string) string {
	if of := processOf(key); strings.Contains(of, groupMark) {
		return of
	}
	return ""
}

// parkedFor is the delay of parked jobs. They do not run before somebody has retried them.
const parkedFor = time.Hour

// isParked reports whether a job of a group is parked: one in three. One in three is never
// done.
func isParked(key string) bool { return numberOf(key)%3 == 0 }

// asGroup enqueues a group of jobs.
func (e *enqueuer) asGroup(ctx context.Context) error {
	e.group = group{name: fmt.Sprint(e.Name, groupMark, e.made)}
	params, keys := make([]falldue.EnqueueParams, 2+e.dice.IntN(10)), []string{}
	for i := range params {
		e.made++
		job := Job{Key: keyOf(e.group.name, i), Dies: i%3 == 1}
		opts := falldue.EnqueueOptions{Key: e.group.name}
		if isParked(job.Key) {
			opts.Delay = parkedFor
		}
		keys, params[i] = append(keys, job.Key), e.kinds.changed.Params(job, opts)
	}
	receipts, err := e.queue.EnqueueMany(ctx, params...)
	if err != nil {
		return err
	}
	e.write(Acknowledged, keys, idsOf(receipts))
	return nil
}

// changeGroup changes the last group, or enqueues the next one.
func (e *enqueuer) changeGroup(ctx context.Context) error {
	if e.group.name == "" || e.group.changes == changesEach {
		return e.asGroup(ctx)
	}
	e.group.changes++
	filter := ops.Filter{Kind: changedName, Key: e.group.name}
	what := []change{cancels, retriesDead, retriesDead, retriesCancelled}[e.dice.IntN(4)]
	if e.group.changes == changesEach && e.dice.IntN(2) == 0 {
		what = deletes
	}
	var spread ops.Spread
	if e.dice.IntN(2) == 0 {
		spread.Rate = 20
	} else {
		spread.Over = 500 * time.Millisecond
	}
	if what == retriesDead {
		if err := e.noteDead(ctx, filter); err != nil {
			return err
		}
	}
	event := Event{What: Changing, Key: e.group.name, ID: int64(e.group.changes), Outcome: string(what)}
	e.history.Write(event)
	var report ops.BulkReport
	var err error
	switch what {
	case cancels:
		report, err = ops.New(e.queue).CancelMany(ctx, filter)
	case deletes:
		report, err = ops.New(e.queue).DeleteMany(ctx, filter, ops.BulkOptions{Running: e.dice.IntN(2) == 0})
	case retriesCancelled:
		filter.State = falldue.StateCancelled
		fallthrough
	default:
		report, err = ops.New(e.queue).RetryMany(ctx, filter, ops.BulkOptions{Spread: spread})
	}
	if err == nil && e.sure(report) {
		event.What = Changed
		e.history.Write(event)
	}
	return err
}

// noteDead records which jobs of a group are dead.
func (e *enqueuer) noteDead(ctx context.Context, filter ops.Filter) error {
	filter.State = falldue.StateDead
	page, err := ops.New(e.queue).Tasks(ctx, filter)
	for _, t := range page.Tasks {
		row, err := rowOf(t)
		if err != nil {
			return err
		}
		e.history.Write(Event{What: WasDead, Key: row.Key, ID: t.ID, Fence: t.Fence, Attempt: e.group.changes})
	}
	return err
}

// deleteParked deletes the jobs that are still parked.
func deleteParked(ctx context.Context, q *falldue.Queue) error {
	for o := (ops.ListOptions{Limit: 1000}); ; {
		page, err := ops.New(q).Tasks(ctx, ops.Filter{Kind: changedName, State: falldue.StateOpen}, o)
		if err != nil || len(page.Tasks) == 0 {
			return err
		}
		for _, t := range page.Tasks {
			if o.After = t.ID; t.UpdatedAt.Sub(t.Now) > parkedFor/2 {
				if err := q.Delete(ctx, t.ID); err != nil {
					return err
				}
			}
		}
	}
}

// made is a change that a process has begun, and whether it says that all jobs are changed.
type made struct {
	change
	number int
	sure   bool
}

func (m made) retries() bool { return m.change == retriesDead || m.change == retriesCancelled }

// The states of jobs of groups, beside those that tasks end in.
const (
	isWaiting = "waiting" // or runs
	isGone    = "gone"
	isParking = "parked"
)

// possible returns the states in which a job of a group may be after changes.
func possible(key string, acknowledged bool, all []made) (states []string) {
	states = []string{isWaiting}
	if isParked(key) {
		states = []string{isParking}
	}
	for _, m := range all {
		var next []string
		for _, s := range evolved(states) {
			to := s
			switch unfinished := s == isWaiting || s == isParking; {
			case m.change == deletes:
				to = isGone
			case m.change == cancels && unfinished:
				to = "cancelled"
			case m.change == retriesDead && s == "dead", m.change == retriesCancelled && s == "cancelled":
				to = isWaiting
			}
			next = append(next, to)
			if !m.sure || !acknowledged { // an enqueue without an answer may come after the change
				next = append(next, s)
			}
		}
		slices.Sort(next)
		states = slices.Compact(next)
	}
	return evolved(states)
}

// evolved returns states with those that follow without a change: a job that waits may end.
func evolved(states []string) []string {
	if slices.Contains(states, isWaiting) {
		states = append(states, "done", "dead")
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// changesOf returns the changes of each group in their order.
func changesOf(history []Event) map[string][]made {
	groups := map[string][]made{}
	for _, e := range history {
		if e.What == Changing {
			groups[e.Key] = append(groups[e.Key], made{change(e.Outcome), int(e.ID), false})
		}
	}
	for _, e := range history {
		if e.What != Changed {
			continue
		}
		for i := range groups[e.Key] {
			if m := &groups[e.Key][i]; m.number == int(e.ID) {
				m.sure = true
			}
		}
	}
	for _, all := range groups {
		slices.SortFunc(all, func(a, b made) int { return a.number - b.number })
	}
	return groups
}

// unexplained returns the jobs of groups that ended in a state that no change explains, and those
// that did not run again after they were retried.
func unexplained(lives map[string]*life, groups map[string][]made) (list []finding) {
	for key, l := range lives {
		name := groupOf(key)
		if name == "" || len(l.rows) > 1 {
			continue
		}
		all, state := groups[name], isGone
		if len(l.rows) == 1 {
			state = l.rows[0].State
		}
		may := possible(key, l.acknowledged, all)
		// Those that are still parked are deleted at the end.
		if !slices.Contains(may, state) && (state != isGone || !slices.Contains(may, isParking)) {
			list = append(list, finding{key, fmt.Sprintf("it ended as %s, and may be %s after the changes %v", state, strings.Join(may, " or "), all)})
			continue
		}
		for _, e := range l.dead {
			retried := slices.ContainsFunc(all, func(m made) bool { return m.number == e.Attempt && m.sure })
			if text := l.endedBy(e.Fence); text != "" && retried {
				list = append(list, finding{key, text})
				break
			}
		}
	}
	return list
}
