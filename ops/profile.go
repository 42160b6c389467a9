package ops

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Profile describes the tasks that wait at one moment, in enough detail to compute when they fall due under any policy.
// From the end of its lease on, a running task counts as a waiting task.
type Profile struct {
	// At is the time of the database's clock.
	At time.Time
	// Tasks is the number of tasks that wait or run.
	Tasks    int64
	key      string // of all the tasks, or "" if they have any
	groups   []store.Profiled
	policies Policies
}

// Profile reads all waiting tasks with one statement. It takes two to five seconds for each million tasks, and a few
// seconds more if the server has to read them from the disk. The methods of the result don't use the database. To limit
// the time, use a context with a deadline. MySQL, MariaDB and TiDB still finish the statement after the deadline.
//
// A profile ignores overrides of subjects with a key. To include the overrides of one key, use [Ops.ProfileKey].
func (o *Ops) Profile(ctx context.Context) (*Profile, error) { return o.profile(ctx, "") }

// ProfileKey is like [Ops.Profile], but reads only the tasks with a key, in the form of [falldue.TaskInfo].Key.
func (o *Ops) ProfileKey(ctx context.Context, key string) (*Profile, error) {
	return o.profile(ctx, key)
}

func (o *Ops) profile(ctx context.Context, key string) (*Profile, error) {
	start := time.Now()
	groups, err := o.store.Profile(ctx, key)
	if err != nil {
		return nil, err
	}
	read := time.Since(start)
	p := &Profile{At: time.Now().UTC(), key: key, groups: groups}
	keys := map[string]bool{}
	for _, g := range groups {
		p.At = store.Time(g.Now)
		p.Tasks += g.Tasks
		keys[g.Policy] = true
	}
	if key == "" {
		o.took(p.Tasks, read)
	}
	if p.policies, err = o.Policies(ctx, slices.Collect(maps.Keys(keys))...); err != nil {
		return nil, err
	}
	return p, nil
}

// Now returns the time of the database's clock.
func (o *Ops) Now(ctx context.Context) (time.Time, error) { return o.store.Now(ctx) }

// EstimateTasks returns the approximate number of tasks in all states together. known is false if the server has no
// estimate. EstimateTasks reads only the server's statistics, which costs almost nothing.
func (o *Ops) EstimateTasks(ctx context.Context) (tasks int64, known bool, err error) {
	rows, known, err := o.store.Fact(ctx, statements.FactRows)
	return rows.Amount, known, err
}

// Load describes how many tasks fall due, and when.
type Load struct {
	// Due is the number of tasks that are due already.
	Due int64
	// Minutes counts the tasks that fall due in each minute after the profile, and Later the tasks
	// that fall due after the last of these minutes.
	Minutes []int64
	Later   int64
	// Peak is how many tasks fall due in the busiest minute, and PeakAt is how long after the profile that minute
	// begins. Tasks that are due already count in the first minute.
	Peak   int64
	PeakAt time.Duration
}

// Total returns the number of all tasks of a load.
func (l Load) Total() int64 {
	total := l.Due + l.Later
	for _, n := range l.Minutes {
		total += n
	}
	return total
}

// Within returns how many tasks fall due within a number of minutes, or in all of Minutes if there are fewer. Tasks
// that are already due are not included.
func (l Load) Within(minutes int) (n int64) {
	for _, m := range l.Minutes[:max(min(minutes, len(l.Minutes)), 0)] {
		n += m
	}
	return n
}

// loadBuilder adds up a Load.
type loadBuilder struct {
	now     int64 // microseconds since 1970
	due     int64
	minutes map[int64]int64
}

func (p *Profile) newLoad() *loadBuilder {
	return &loadBuilder{now: p.At.UnixMicro(), minutes: map[int64]int64{}}
}

const minuteMicros = int64(time.Minute / time.Microsecond)

// wait is a delay and when it holds, in microseconds since 1970.
type wait struct {
	from, to int64
	delay    time.Duration
}

// always returns the wait of a delay that never changes.
func always(delay time.Duration) []wait { return []wait{{math.MinInt64, math.MaxInt64, delay}} }

// waitsOf returns the waits of a group under policies.
func waitsOf(g *store.Profiled, list []span) (waits []wait) {
	for _, s := range list {
		w := always(delayOf(g, s.policy))[0]
		if !s.from.IsZero() {
			w.from = s.from.UnixMicro()
		}
		if !s.to.IsZero() {
			w.to = s.to.UnixMicro()
		}
		waits = append(waits, w)
	}
	return waits
}

// add adds a group of tasks with their waits.
func (b *loadBuilder) add(g *store.Profiled, waits []wait) {
	before := dueOf(g, waits, b.now)
	b.due += before
	// The anchors of a group are in one minute, so that it falls due in two in each wait.
	var minutes []int64
	for _, w := range waits {
		first, last := max(dueMicros(g.First, w.delay), w.from, b.now), max(dueMicros(g.Last, w.delay), w.from, b.now)
		for at := first; at <= w.to && at < last+minuteMicros; at += minuteMicros {
			minutes = append(minutes, (at-b.now)/minuteMicros)
		}
	}
	slices.Sort(minutes)
	for _, minute := range slices.Compact(minutes) {
		by := dueOf(g, waits, b.now+(minute+1)*minuteMicros)
		b.minutes[minute] += by - before
		before = by
	}
}

// load returns the load, with minutes up to a horizon.
func (b *loadBuilder) load(horizon time.Duration) Load {
	l := Load{Due: b.due, Minutes: make([]int64, (horizon+time.Minute-1)/time.Minute), Peak: b.due}
	for _, minute := range slices.Sorted(maps.Keys(b.minutes)) {
		n := b.minutes[minute]
		if minute < int64(len(l.Minutes)) {
			l.Minutes[minute] += n
		} else {
			l.Later += n
		}
		if minute == 0 {
			n += b.due
		}
		if n > l.Peak {
			l.Peak, l.PeakAt = n, store.Duration(minute*minuteMicros)
		}
	}
	return l
}

// dueMicros returns when a task falls due, in microseconds since 1970.
func dueMicros(anchor int64, delay time.Duration) int64 {
	const most = 1 << 60 // far from any time that a caller may have meant
	return max(min(anchor, most), -most) + delay.Microseconds()
}

// dueBy returns how many tasks of a group are due at a time, if they wait for delay after
// their anchors. Between the first and the last anchor the tasks are taken to be evenly
// spread.
func dueBy(g *store.Profiled, delay time.Duration, at int64) int64 {
	first, last := dueMicros(g.First, delay), dueMicros(g.Last, delay)
	switch {
	case at < first:
		return 0
	case at >= last:
		return g.Tasks
	}
	share := float64(at-first) / float64(last-first)
	return int64(share*float64(g.Tasks-1)) + 1 // the first is due, and the last is not
}

// dueOf returns how many tasks of a group have fallen due at a time under waits.
func dueOf(g *store.Profiled, waits []wait, at int64) (n int64) {
	for _, w := range waits {
		if w.from <= at {
			n = max(n, dueBy(g, w.delay, min(at, w.to)))
		}
	}
	return n
}

// firstDue returns when a task falls due under waits, in microseconds since 1970.
func firstDue(anchor int64, waits []wait) (due int64) {
	for _, w := range waits {
		if due = dueMicros(anchor, w.delay); due < w.to {
			return max(due, w.from)
		}
	}
	return due
}

// KindLoad is the load of a kind.
type KindLoad struct {
	Kind string
	Load
	// Unknown is the number of tasks that have failed and whose policy is not known. These tasks are not in the load.
	Unknown int64
}

// Forecast describes when the tasks that wait now fall due. New tasks and further failures are not included.
type Forecast struct {
	At    time.Time
	Kinds []KindLoad // in the order of their names
	All   KindLoad   // the sum of all kinds; its Kind is ""
}

// Stalled returns the kinds that have due tasks but a pace of 0, sorted by name. While there are such kinds, the
// pace of all kinds together cannot predict the end of the backlog.
func (f Forecast) Stalled(p Pace) (kinds []string) {
	for _, k := range f.Kinds {
		if k.Due > 0 && p.Of(k.Kind) == 0 {
			kinds = append(kinds, k.Kind)
		}
	}
	return kinds
}

// Policies returns the policies of the profile, with the overrides that were in effect when it was read.
func (p *Profile) Policies() Policies { return p.policies }

// Forecast returns when the tasks fall due, minute by minute up to a horizon of 1 minute to 365 days. A horizon of 0
// means 24 hours. It uses the policies of [Profile.Policies].
func (p *Profile) Forecast(horizon time.Duration) (Forecast, error) {
	horizon, err := validHorizon(horizon)
	if err != nil {
		return Forecast{}, err
	}
	type sum struct {
		builder *loadBuilder
		unknown int64
	}
	all, kinds := sum{builder: p.newLoad()}, map[string]*sum{}
	for g := range p.all {
		k := kinds[g.Kind]
		if k == nil {
			k = &sum{builder: p.newLoad()}
			kinds[g.Kind] = k
		}
		waits := p.waits(g, p.policies)
		if waits == nil {
			k.unknown += g.Tasks
			all.unknown += g.Tasks
			continue
		}
		k.builder.add(g, waits)
		all.builder.add(g, waits)
	}
	f := Forecast{At: p.At, All: KindLoad{Load: all.builder.load(horizon), Unknown: all.unknown}}
	for name, k := range kinds {
		f.Kinds = append(f.Kinds, KindLoad{Kind: name, Load: k.builder.load(horizon), Unknown: k.unknown})
	}
	slices.SortFunc(f.Kinds, func(a, b KindLoad) int { return cmp.Compare(a.Kind, b.Kind) })
	return f, nil
}

// Gone returns how long it takes until no task is due, if perSecond tasks succeed each second
// and none is enqueued. It returns false if that does not happen within the load's minutes.
// perSecond must be above 0.
func (l Load) Gone(perSecond float64) (time.Duration, bool) {
	waiting := float64(l.Due)
	for minute, n := range l.Minutes {
		if waiting == 0 && n == 0 {
			return time.Duration(minute) * time.Minute, true
		}
		waiting += float64(n)
		if done := 60 * perSecond; waiting > done {
			waiting -= done
			continue
		}
		return time.Duration(minute)*time.Minute + time.Duration(waiting/perSecond*float64(time.Second)), true
	}
	return 0, false
}

// all yields the groups, each with a task of it.
func (p *Profile) all(yield func(*store.Profiled, falldue.TaskInfo) bool) {
	for i := range p.groups {
		if g := &p.groups[i]; !yield(g, taskIn(g.Queue, g.Lane)) {
			return
		}
	}
}

// waits returns the waits of a group under policies whose overrides take their steps and end. It
// returns nil if the tasks have failed and their policy is not known.
func (p *Profile) waits(g *store.Profiled, under Policies) []wait {
	if !g.Delayed() {
		return always(0)
	}
	list, _ := under.spans(taskIn(g.Queue, g.Lane), p.At)
	return waitsOf(g, list)
}

// delayOf returns the delay of the tasks of a group under a policy.
func delayOf(g *store.Profiled, p backoff.Policy) time.Duration {
	if !g.Delayed() {
		return 0
	}
	delay, _ := p.Wait(int64(g.Attempts))
	return delay
}
