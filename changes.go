package falldue

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

const (
	// changesEvery is the time between two reads of changes while the prober does not look
	// for them.
	changesEvery = time.Second
	// maxLookPause is the longest time between two looks of the prober, and lookValid is how
	// long a look stands in for reads: workers obey within two seconds.
	maxLookPause = 1750 * time.Millisecond
	lookValid    = 1850 * time.Millisecond
	// changesMargin is how much later than a change with a later time a change may be
	// committed and still be read.
	changesMargin = 30 * time.Second
	// allChangesEvery is the time between two reads of all changes. They find what was
	// committed later, and what a failover has lost.
	allChangesEvery = time.Minute
	// keepCancels is how long cancels are kept, which workers read within seconds.
	keepCancels = time.Hour
	// keepChanges is how long changes are kept after which others were made.
	keepChanges = 90 * 24 * time.Hour
)

// changeReader is the role that reads what people have asked of all workers, and obeys.
// What it reads twice it obeys twice, which changes nothing.
type changeReader struct {
	changes func(ctx context.Context, back time.Duration) ([]store.StoredChange, error)
	// resumed is called when tasks are no longer paused, and pausedNow when others are.
	resumed, pausedNow func()
	// overridden is told which overrides of policies the table asks for.
	overridden func([]knownChange)
	// cancel ends the contexts of the runs of tasks, by their ids, with fences up to a number.
	cancel func(fences map[int64]int64)
	events events
	// troubles learns whether changes can be read, and which pauses cannot be obeyed.
	troubles *troubles
	hurry    chan struct{} // signalled when there is something to read

	seen   atomic.Int64 // what the last look saw
	lookAt atomic.Int64 // when it began, in nanoseconds since 1970

	pauses atomic.Pointer[[]heldBack] // nil if there are none

	reading chan struct{}          // its one element is held while reading, which guards what follows
	known   map[string]knownChange // the newest of each topic
	refused map[string]error       // pauses that cannot be obeyed, by their subjects
	last    time.Time              // when changes were last read
	lastAll time.Time              // when all were
}

// newChangeReader returns a role that reads changes and obeys none of them but pauses.
func newChangeReader(s *store.Store, e events) *changeReader {
	return &changeReader{
		changes: s.Changes, resumed: func() {}, pausedNow: func() {}, overridden: func([]knownChange) {}, cancel: func(map[int64]int64) {},
		events: e, troubles: newTroubles(), hurry: make(chan struct{}, 1), reading: make(chan struct{}, 1),
	}
}

// work reads changes until ctx ends.
func (r *changeReader) work(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := changesEvery
		if err := r.read(ctx); err != nil && ctx.Err() == nil {
			r.events.changesFailed(err)
			wait = max(wait, errorPause(failures))
			if failures++; failures >= unreadAfter {
				r.troubles.unreadable(err)
			}
		} else {
			failures = 0
			r.troubles.unreadable(nil)
		}
		r.wait(ctx, wait+rand.N(wait/20), failures > 0)
	}
}

// wait waits until the next read: for a time, longer while looks stand in for reads and the
// last read has not failed, or until there is something to read.
func (r *changeReader) wait(ctx context.Context, d time.Duration, failed bool) {
	start := time.Now()
	for end := start.Add(d); ctx.Err() == nil; {
		next, left := r.nextEnd(), time.Until(end)
		if failed {
			next = never // a pause ends for claims without a read
		}
		if await(ctx, r.hurry, min(next, left)) || next < left {
			return
		}
		valid := time.Unix(0, r.lookAt.Load()).Add(lookValid)
		if end = start.Add(min(valid.Sub(start), allChangesEvery)); failed || !end.After(time.Now()) {
			return
		}
	}
}

// look takes note of what a look that began at a time has seen of the changes.
func (r *changeReader) look(at time.Time, seen int64) {
	r.lookAt.Store(at.UnixNano())
	if r.seen.Swap(seen) != seen {
		signal(r.hurry)
	}
}

// nextEnd returns in how long the first pause ends by itself.
func (r *changeReader) nextEnd() time.Duration {
	next := never
	if list := r.pauses.Load(); list != nil {
		for _, p := range *list {
			if !p.until.IsZero() {
				next = min(next, max(time.Until(p.until), time.Millisecond))
			}
		}
	}
	return next
}

// read reads the changes since the last read, and obeys them. While another goroutine
// reads, perhaps from a connection that has gone silent, it waits as long as ctx allows.
func (r *changeReader) read(ctx context.Context) error {
	ctx, cancel := statementContext(ctx, statementTimeout)
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
		back = changesMargin + max(start.Sub(r.last), start.Round(0).Sub(r.last.Round(0)))
	}
	list, err := r.changes(ctx, back)
	if err != nil {
		return err
	}
	r.last = start
	if all {
		r.lastAll, r.known = start, map[string]knownChange{}
	}
	r.obey(list, time.Now()) // the database read its clock before this, so that no pause ends early
	return nil
}

// obey obeys changes that were read at a time.
func (r *changeReader) obey(list []store.StoredChange, read time.Time) {
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
	r.overridden(r.overrides())
	var before []heldBack
	if p := r.pauses.Load(); p != nil {
		before = *p
	}
	now, unknown := r.heldBack(time.Now())
	r.refusePauses(unknown)
	if len(now) == 0 {
		r.pauses.Store(nil)
	} else {
		r.pauses.Store(&now)
		r.pausedNow()
	}
	ended := func(p heldBack) bool {
		return !slices.ContainsFunc(now, func(o heldBack) bool { return o.Subject == p.Subject })
	}
	if slices.ContainsFunc(before, ended) {
		r.resumed()
	}
	if len(fences) > 0 {
		r.cancel(fences)
	}
}

// learn adds changes to those that are known, and keeps the newest of each topic.
func (r *changeReader) learn(list []store.StoredChange, read time.Time) {
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

// overrides returns the overrides of policies that the table asks for.
func (r *changeReader) overrides() (list []knownChange) {
	for _, c := range r.known {
		if c.What == statements.ChangePolicy {
			list = append(list, c)
		}
	}
	return list
}

// heldBack returns the pauses that hold at now, and of those whose subjects this release does
// not know the subjects.
func (r *changeReader) heldBack(now time.Time) (list []heldBack, unknown map[string]error) {
	unknown = map[string]error{}
	for _, c := range r.known {
		if c.What != statements.ChangePause {
			continue
		}
		subject, ok := control.ParseSubject(c.Subject)
		p := heldBack{Subject: subject}
		if c.Ends > 0 {
			p.until = c.read.Add(store.Duration(c.Ends - c.Now))
		}
		switch {
		case !p.holds(now):
		case ok:
			list = append(list, p)
		default:
			unknown[c.Subject] = control.ErrUnknownSubject
		}
	}
	return list, unknown
}

// refusePauses tells which pauses the worker cannot obey, and logs those that are new.
func (r *changeReader) refusePauses(pauses map[string]error) {
	for subject, err := range pauses {
		if r.refused[subject] == nil {
			r.events.pauseFailed(subject, err)
		}
	}
	r.refused = pauses
	r.troubles.refusePauses(pauses)
}

// knownChange is a change and when it was read.
type knownChange struct {
	store.StoredChange
	read time.Time
}

// made returns when the change was made, by the worker's monotonic clock, as far as the read knows:
// late by what that took.
func (c knownChange) made() time.Time { return c.read.Add(store.Duration(c.Created - c.Now)) }

// byTime orders changes by the times at which they were made.
func byTime(a, b store.StoredChange) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
}

// paused reports whether the tasks of a lane are paused.
func (r *changeReader) paused(queue string, at store.Lane) bool {
	list := r.pauses.Load()
	return list != nil && paused(*list, queue, at, time.Now())
}

// unpaused admits lanes that no pause names.
type unpaused struct {
	changes *changeReader
	queue   string
}

func (u unpaused) admit(at store.Lane, _ **rule, _ func()) bool {
	return !u.changes.paused(u.queue, at)
}
