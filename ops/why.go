package ops

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/store"
)

// Why explains why a worker can or cannot run a task now.
type Why struct {
	Task falldue.TaskInfo
	// Conditions are the conditions for starting the task, met or not. A finished task has only [WhyState], a blocked task
	// has [WhyState] and [WhyMembers], and a running task has [WhyState] and [WhyClaim], since no other condition matters.
	Conditions []Condition
}

// Condition is a condition for starting a task: one of [WhyState], [WhyMembers], [WhyClaim], [WhyAttempts],
// [WhyPolicy], [WhyDue], [WhyExpiry], [WhyPause], [WhyWorker], [WhyHandlers], [WhyLimit], [WhyNoLimit], [WhySequence],
// [WhyLock] and [WhyRank].
type Condition interface {
	// Name is a short name of the condition, such as due.
	Name() string
	// Holds reports whether the condition is met. A condition that is not met keeps all workers from running the task.
	Holds() bool
	// Describe describes the condition of the task in words, with the facts. Times are UTC. The texts may change in any
	// release.
	Describe(t falldue.TaskInfo) string
}

// Ends returns when a condition that isn't met will be met without a person's action, by the database's clock. It
// returns the zero time if the condition needs a person's action, or if the time is not known.
func Ends(c Condition) time.Time {
	switch c := c.(type) {
	case WhyDue:
		return c.At()
	case WhyPause:
		return c.Until()
	case WhyLimit:
		return c.Free
	}
	return time.Time{}
}

// Runnable reports whether all conditions are met: a worker can start the task now.
func (w Why) Runnable() bool {
	return !slices.ContainsFunc(w.Conditions, func(c Condition) bool { return !c.Holds() })
}

// Next returns the time at which all conditions will be met, if nothing is changed in the meantime: now if the task is
// runnable, and the zero time if the time is not known. While another condition is not met, Next ignores busy handlers:
// at the returned time, the task may still wait for a free handler, behind the tasks that [WhyRank] counts.
func (w Why) Next() time.Time {
	next := w.Task.Now
	for _, c := range w.Conditions {
		_, handlers := c.(WhyHandlers)
		switch ends := Ends(c); {
		case c.Holds(), handlers && w.waits():
		case ends.IsZero():
			return time.Time{}
		case ends.After(next):
			next = ends
		}
	}
	return next
}

// waits reports whether something else than busy handlers keeps the task waiting.
func (w Why) waits() bool {
	return slices.ContainsFunc(w.Conditions, func(c Condition) bool {
		_, handlers := c.(WhyHandlers)
		return !handlers && !c.Holds()
	})
}

// whyTries is how often Why looks again at a task that has changed meanwhile.
const whyTries = 3

// Why returns the conditions for starting a task, with the facts. It reads the conditions one after the other, so in a
// busy queue they are from slightly different moments. To find out whether another transaction has locked the task's
// row, Why locks the row for a moment, if the database user has the permission. The error wraps [falldue.ErrNotFound]
// if there is no such task.
func (o *Ops) Why(ctx context.Context, id int64) (Why, error) {
	for try := 1; ; try++ {
		t, err := o.queue.Task(ctx, id)
		if err != nil {
			return Why{}, err
		}
		w, err := o.why(ctx, t)
		if err != nil {
			return w, err
		}
		now, err := o.queue.Task(ctx, id)
		if err == nil && now.Fence == t.Fence && now.State == t.State || try == whyTries {
			return w, err
		}
	}
}

func (o *Ops) why(ctx context.Context, t falldue.TaskInfo) (Why, error) {
	w := Why{Task: t}
	add := func(c Condition) { w.Conditions = append(w.Conditions, c) }
	state := WhyState{State: t.State}
	if !state.Holds() {
		state.Since = t.UpdatedAt
	}
	if add(state); !state.Holds() {
		return w, nil
	}
	if t.State == falldue.StateBlocked {
		members, err := o.whyMembers(ctx, t.ID)
		add(members)
		return w, err
	}
	now, err := o.snapshot(ctx, t.Policy)
	if err := cmp.Or(err, now.unread); err != nil {
		return w, err
	}
	claim := claimOf(t, now.workers)
	if add(claim); !claim.Holds() {
		return w, nil
	}
	due, most, policy, err := o.whyDue(ctx, t, now)
	if err != nil {
		return w, err
	}
	add(WhyAttempts{t.Attempts, most})
	if policy != nil {
		policy.readBy(t, now.workers)
		add(*policy)
	}
	add(due)
	if expiry := whyExpiry(t, due); !expiry.At.IsZero() {
		add(expiry)
	}
	add(now.whyPause(t))
	handled := workersFor(t, now.workers)
	add(handled)
	if handled.Holds() {
		add(whyHandlers(t, now.workers))
	}
	limits, err := o.whyLimits(ctx, t, now)
	if err != nil {
		return w, err
	}
	for _, c := range slices.Concat(limits, now.notLimiting(t)) {
		add(c)
	}
	if o.store.Server().Caps.LockRows {
		var lock WhyLock
		if lock.Locked, lock.Known, err = o.store.Locked(ctx, store.Key{TaskID: t.ID, Fence: t.Fence}); err != nil {
			return w, err
		}
		add(lock)
	}
	ahead, err := o.store.CountAhead(ctx, t.Queue, laneOfTask(t), t.ID, t.UpdatedAt.UnixMicro(), mostAhead+1)
	if err != nil {
		return w, err
	}
	add(WhyRank{min(ahead, mostAhead), ahead > mostAhead})
	return w, nil
}

// shownMembers is how many IDs of each sort [WhyMembers] has.
const shownMembers = 10

func (o *Ops) whyMembers(ctx context.Context, id int64) (c WhyMembers, err error) {
	if c.Counts, err = flow.CountsOf(ctx, o.queue, id); err != nil {
		return c, err
	}
	if c.OnDeath, err = flow.OnDeathOf(ctx, o.queue, id); err != nil {
		return c, err
	}
	for state, list := range map[falldue.State]*[]int64{"": &c.WaitsFor, falldue.StateDead: &c.Failed, falldue.StateCancelled: &c.Failed} {
		ids, err := flow.Members(ctx, o.queue, id, state, 0, shownMembers)
		if err != nil {
			return c, err
		}
		*list = append(*list, ids...)
	}
	slices.Sort(c.Failed)
	return c, nil
}

// mostAhead is the number up to which the tasks before a task are counted.
const mostAhead = 10_000

func laneOfTask(t falldue.TaskInfo) store.Lane {
	return store.Lane{State: string(t.State), Key: t.Key, Priority: t.Priority, Kind: t.Kind, Policy: t.Policy, Attempts: t.Attempts}
}

func claimOf(t falldue.TaskInfo, workers []Worker) WhyClaim {
	if t.ClaimedBy == "" {
		return WhyClaim{}
	}
	live := slices.ContainsFunc(workers, func(w Worker) bool { return w.ID == t.ClaimedBy && w.Live() })
	return WhyClaim{Worker: t.ClaimedBy, Started: t.AttemptedAt, Until: t.UpdatedAt, Lost: !Running(t), Live: live}
}

func (s snapshot) whyPause(t falldue.TaskInfo) (c WhyPause) {
	for _, p := range s.pauses {
		if p.selects(t) {
			c.Pauses = append(c.Pauses, p)
		}
	}
	return c
}

func workersFor(t falldue.TaskInfo, workers []Worker) (c WhyWorker) {
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		_, works := w.Queue(t.Queue)
		_, handles := w.Kinds[t.Kind]
		switch {
		case works && handles && w.Stopping:
			c.Stopping = append(c.Stopping, w.ID)
		case works && handles:
			c.Workers = append(c.Workers, w.ID)
			if w.Unread != "" {
				c.Unread = append(c.Unread, w.ID)
				c.UnreadError = cmp.Or(c.UnreadError, w.Unread)
			}
		case works:
			c.InQueue = append(c.InQueue, w.ID)
		case handles:
			c.OfKind = append(c.OfKind, w.ID)
		}
	}
	return c
}

func whyHandlers(t falldue.TaskInfo, workers []Worker) WhyHandlers {
	c := WhyHandlers{QueueHandlers: Handlers(workers, t.Queue, t.Kind)}
	perSecond := 0.0
	for _, w := range workers {
		if !w.Live() || !w.Handles(t.Queue, t.Kind) || w.RecentTime <= 0 {
			continue
		}
		c.Over = max(c.Over, w.RecentTime)
		for _, runs := range w.Recent {
			perSecond += float64(runs.Done+runs.Failed) / w.RecentTime.Seconds()
		}
	}
	if perSecond > 0 {
		c.Every = time.Duration(float64(time.Second) / perSecond)
	}
	return c
}

// whyLimits returns what the limits of a task admit, and its sequence.
func (o *Ops) whyLimits(ctx context.Context, t falldue.TaskInfo, now snapshot) (list []Condition, err error) {
	limits, err := o.limitStates(ctx, now, &t)
	if err != nil {
		return nil, err
	}
	admitted := !limits[0].heldFrom(t.ID)
	for _, g := range limits[0].groups() {
		l := g.widest()
		if l.Form.Ordered() {
			if n := slices.IndexFunc(g.states, func(s store.LimitState) bool { return s.AdmitsTask(t.ID) }); n >= 0 {
				l = g.states[n]
			}
			c, err := o.whySequence(ctx, t, l, now)
			if err != nil {
				return nil, err
			}
			c.Without = g.without
			list = append(list, c)
			continue
		}
		c := WhyLimit{Limit: l.Text, Owner: g.owner, PerKey: l.PerKey, Part: l.Part, Room: max(l.Room, 0), Taken: l.Taken}
		if g.differs() {
			c.Definitions, c.Without, c.Admitted = g.definitions, g.without, admitted
		}
		if l.Wait > 0 {
			c.Free = t.Now.Add(l.Wait)
		}
		list = append(list, c)
	}
	return list, nil
}

// notLimiting returns the limits per key that do not count the task, on live workers that may run it.
func (s snapshot) notLimiting(t falldue.TaskInfo) (list []Condition) {
	add := func(owner string, limits []store.Limit) {
		for _, l := range limits {
			if c := (WhyNoLimit{Limit: l.Text, Owner: owner, Part: l.Part}); !l.Applies(t.Key) && !slices.Contains(list, Condition(c)) {
				list = append(list, c)
			}
		}
	}
	for _, w := range s.workers {
		if w.Live() && w.Handles(t.Queue, t.Kind) {
			on, _ := w.Queue(t.Queue)
			add("queue "+t.Queue, on.limits)
			add("kind "+t.Kind, w.Kinds[t.Kind].limits)
		}
	}
	return list
}

func (o *Ops) whySequence(ctx context.Context, t falldue.TaskInfo, s store.LimitState, now snapshot) (c WhySequence, err error) {
	switch c.Next = s.Next; {
	case !s.AdmitsTask(t.ID) && len(s.Taken) > 0:
		c.Next, c.Runs, c.Halted = s.Taken[0], !s.Halted, s.Halted
	case c.Next == 0:
		c.Next, err = o.store.First(ctx, t.Queue, laneOfTask(t))
	}
	c.own = c.Next == t.ID
	if err != nil || c.Holds() || c.Runs || c.Halted {
		return c, err
	}
	next, err := o.queue.Task(ctx, c.Next)
	if errors.Is(err, falldue.ErrNotFound) {
		return c, nil // it has ended meanwhile
	} else if err != nil {
		return c, err
	}
	if err := now.readOwn(ctx, o.store, []string{next.Policy}); err != nil {
		return c, err
	}
	if due, known := now.due(next); known && now.Unreadable[next.Policy] == nil {
		c.NextDue = due
	}
	c.NextPaused = now.paused(next)
	return c, nil
}
