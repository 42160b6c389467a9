package control

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

const (
	// changesEvery is the time between two reads of changes while no probes stand in for reads.
	changesEvery = time.Second
	// MaxProbePause is the longest time between two probes. probeValid is how long a probe stands in
	// for a read of changes: workers apply changes within two seconds.
	MaxProbePause = 1750 * time.Millisecond
	probeValid    = 1850 * time.Millisecond
	// ChangesMargin is how far reads overlap, since changes are not committed in the order of
	// their times.
	ChangesMargin = 30 * time.Second
	// allChangesEvery is the time between two reads of all changes. Such a read finds changes that
	// were committed later, and notices changes that a failover has lost.
	allChangesEvery = time.Minute
	// KeepCancels is how long cancels are kept. Workers read them within seconds.
	KeepCancels = time.Hour
	// KeepChanges is how long a change is kept after a newer change of its subject.
	KeepChanges = 90 * 24 * time.Hour
)

// forEver is a wait that only a signal ends.
const forEver = 100 * 365 * 24 * time.Hour

// effects applies changes to a worker.
type effects interface {
	// Cancelled ends runs of cancelled tasks. fences has the highest fence to end, by task ID.
	Cancelled(fences map[int64]int64)
	// PausedMore releases tasks that wait for a handler and are paused now.
	PausedMore()
	// Resumed makes the worker search for tasks that are no longer paused.
	Resumed()
	// PoliciesChanged makes the worker use the policies that are in effect now.
	PoliciesChanged()
}

// changesTable is the table of changes.
type changesTable interface {
	// Changes returns the changes that were made within a time before now.
	Changes(ctx context.Context, back time.Duration) ([]store.StoredChange, error)
}

// ChangeReader is the role that reads pauses, overrides and cancels, and applies them. Applying a change
// twice has no further effect.
type ChangeReader struct {
	table     changesTable
	overrides *Overrides
	effects   effects
	events    events
	health    *HealthReport // is told whether changes can be read, and which pauses cannot be applied
	hurry     chan struct{} // signalled when there is something to read

	seen     atomic.Int64 // identifies the changes that the last probe saw
	probedAt atomic.Int64 // when that probe began, in nanoseconds since 1970

	pauses atomic.Pointer[[]pause] // nil if there are none

	reading chan struct{}          // the lock of the fields below, which a read holds
	known   map[string]knownChange // the newest of each topic
	refused map[string]error       // pauses that cannot be applied, by their subjects
	last    time.Time              // when changes were last read
	lastAll time.Time              // when all changes were read
}

// NewChangeReader returns a reader of changes that applies them through overrides and effects.
func NewChangeReader(table changesTable, overrides *Overrides, effects effects, health *HealthReport, log *slog.Logger) *ChangeReader {
	return &ChangeReader{
		table: table, overrides: overrides, effects: effects, health: health,
		events: events{log}, hurry: make(chan struct{}, 1), reading: make(chan struct{}, 1),
	}
}

// Work reads changes until ctx ends.
func (r *ChangeReader) Work(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := changesEvery
		if err := r.Read(ctx); err != nil && ctx.Err() == nil {
			r.events.changesFailed(err)
			wait = max(wait, retry.ErrorPause(failures))
			if failures++; failures >= unreadAfter {
				r.health.unreadable(err)
			}
		} else {
			failures = 0
			r.health.unreadable(nil)
		}
		r.wait(ctx, wait+rand.N(wait/20), failures > 0)
	}
}

// WorkAfterRead is Work for a caller that has just read changes.
func (r *ChangeReader) WorkAfterRead(ctx context.Context) {
	retry.Await(ctx, r.hurry, changesEvery)
	r.Work(ctx)
}

// ReadSoon makes the role read changes now.
func (r *ChangeReader) ReadSoon() { retry.Signal(r.hurry) }

// wait waits until the next read: for a time, or until there is something to read. It waits longer
// while probes stand in for reads, unless the last read failed.
func (r *ChangeReader) wait(ctx context.Context, d time.Duration, failed bool) {
	start := time.Now()
	for end := start.Add(d); ctx.Err() == nil; {
		next, left := r.nextEnd(), time.Until(end)
		if failed {
			next = forEver // claims notice the end of a pause without a read
		}
		if retry.Await(ctx, r.hurry, min(next, left)) || next < left {
			return
		}
		valid := time.Unix(0, r.probedAt.Load()).Add(probeValid)
		if end = start.Add(min(valid.Sub(start), allChangesEvery)); failed || !end.After(time.Now()) {
			return
		}
	}
}

// Probed notes the changes that a probe saw, which began at a time.
func (r *ChangeReader) Probed(at time.Time, seen int64) {
	r.probedAt.Store(at.UnixNano())
	if r.seen.Swap(seen) != seen {
		retry.Signal(r.hurry)
	}
}

// nextEnd returns in how long the first pause ends by itself.
func (r *ChangeReader) nextEnd() time.Duration {
	next := forEver
	if list := r.pauses.Load(); list != nil {
		for _, p := range *list {
			if !p.until.IsZero() {
				next = min(next, max(time.Until(p.until), time.Millisecond))
			}
		}
	}
	return next
}

// NextEffect returns in how long a pause ends by itself, or a step of an override begins or ends. If neither will
// happen, it returns a negative duration.
func (r *ChangeReader) NextEffect() time.Duration {
	next := r.nextEnd()
	if at := r.overrides.nextStep(time.Now()); !at.IsZero() {
		next = min(next, max(time.Until(at), time.Millisecond))
	}
	if next == forEver {
		return -1
	}
	return next
}

// Read reads the changes since the last read, and applies them. While another goroutine
// reads, perhaps from a connection that has gone silent, Read waits as long as ctx allows.
func (r *ChangeReader) Read(ctx context.Context) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	start := time.Now()
	all := start.Sub(r.lastAll) >= allChangesEvery
	back := store.AllChanges
	if !all {
		// The monotonic clock may stand still while the machine sleeps.
		back = ChangesMargin + max(start.Sub(r.last), start.Round(0).Sub(r.last.Round(0)))
	}
	list, err := r.table.Changes(ctx, back)
	if err != nil {
		return err
	}
	r.last = start
	if all {
		r.lastAll, r.known = start, map[string]knownChange{}
	}
	r.apply(list, time.Now()) // the database read its clock before this, so that no pause ends early
	return nil
}

// apply applies changes that were read at a time.
func (r *ChangeReader) apply(list []store.StoredChange, read time.Time) {
	fences := map[int64]int64{}
	for _, c := range list {
		if id, ok := strings.CutPrefix(c.Subject, store.TaskSubject); ok && c.What == statements.ChangeCancel {
			if id, err := strconv.ParseInt(id, 10, 64); err == nil {
				fence, _ := strconv.ParseInt(c.Value, 10, 64)
				fences[id] = max(fences[id], fence)
			}
		}
	}
	r.learn(list, read)
	r.overrides.schedule(r.overrideChanges())
	var before []pause
	if p := r.pauses.Load(); p != nil {
		before = *p
	}
	now, unknown := r.pausesAt(time.Now())
	r.refusePauses(unknown)
	if len(now) == 0 {
		r.pauses.Store(nil)
	} else {
		r.pauses.Store(&now)
		r.effects.PausedMore()
	}
	ended := func(p pause) bool {
		return !slices.ContainsFunc(now, func(o pause) bool { return o.Subject == p.Subject })
	}
	if slices.ContainsFunc(before, ended) {
		r.effects.Resumed()
	}
	if len(fences) > 0 {
		r.effects.Cancelled(fences)
	}
}

// learn adds changes to those that are known, and keeps the newest of each topic.
func (r *ChangeReader) learn(list []store.StoredChange, read time.Time) {
	for _, c := range list {
		topic := c.Topic()
		if topic == "" {
			continue
		}
		if old, ok := r.known[topic]; !ok || byTime(old.StoredChange, c) <= 0 {
			r.known[topic] = knownChange{c, read}
		}
	}
}

// overrideChanges returns the known overrides of policies.
func (r *ChangeReader) overrideChanges() (list []knownChange) {
	for _, c := range r.known {
		if c.What == statements.ChangePolicy {
			list = append(list, c)
		}
	}
	return list
}

// pausesAt returns the pauses that are in effect at now. Pauses of subjects that this release does
// not know are in unknown, by subject.
func (r *ChangeReader) pausesAt(now time.Time) (list []pause, unknown map[string]error) {
	unknown = map[string]error{}
	for _, c := range r.known {
		if c.What != statements.ChangePause {
			continue
		}
		subject, ok := ParseSubject(c.Subject)
		p := pause{Subject: subject}
		if c.Ends > 0 {
			p.until = c.read.Add(store.Duration(c.Ends - c.Now))
		}
		switch {
		case !p.inEffect(now):
		case ok:
			list = append(list, p)
		default:
			unknown[c.Subject] = errUnknownSubject
		}
	}
	return list, unknown
}

// refusePauses reports the pauses that the worker cannot apply, and logs the new ones.
func (r *ChangeReader) refusePauses(pauses map[string]error) {
	for subject, err := range pauses {
		if r.refused[subject] == nil {
			r.events.pauseFailed(subject, err)
		}
	}
	r.refused = pauses
	r.health.refusePauses(pauses)
}

// pause is a pause as a worker knows it.
type pause struct {
	Subject
	until time.Time // by the worker's monotonic clock; zero is never
}

func (p pause) inEffect(now time.Time) bool { return p.until.IsZero() || now.Before(p.until) }

// knownChange is a change and when it was read.
type knownChange struct {
	store.StoredChange
	read time.Time
}

// made returns when the change was made, by the worker's monotonic clock. The time is late by the
// duration of the read.
func (c knownChange) made() time.Time { return c.read.Add(store.Duration(c.Created - c.Now)) }

// byTime orders changes by the times at which they were made.
func byTime(a, b store.StoredChange) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
}

// AnyPause reports whether something is paused.
func (r *ChangeReader) AnyPause() bool { return r.pauses.Load() != nil }

// Paused reports whether the tasks of a lane are paused.
func (r *ChangeReader) Paused(queue string, at store.Lane) bool {
	list := r.pauses.Load()
	if list == nil {
		return false
	}
	now := time.Now()
	return slices.ContainsFunc(*list, func(p pause) bool { return p.Selects(queue, at) && p.inEffect(now) })
}
