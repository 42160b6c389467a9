package dash

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readLimit is how long a read may take.
	readLimit = 5 * time.Second
	// readShare limits the time in which the database works for a value that all viewers see to a
	// part of all time.
	readShare = 20
	// readsAtOnce is how many reads of a handler run concurrently.
	readsAtOnce = 4
	// mostKept is how many values of one sort are kept, such as lists of tasks by their filters.
	mostKept = 64
)

// reading is a value, and how old it is.
type reading[T any] struct {
	Value T
	Known bool
	Age   time.Duration
	// Err is the error of the last read if it failed: Value is from an earlier read.
	Err error
}

// cached is a value that all viewers share. A request reads it anew once it is old. One read at a
// time is under way; whoever comes meanwhile gets the value of the one before.
type cached[T any] struct {
	least   time.Duration // for which a value is fresh in any case
	limit   time.Duration
	read    func(context.Context) (T, error)
	slots   chan struct{}
	changed *atomic.Int64
	flight  chan struct{}

	mu      sync.Mutex
	value   T
	known   bool
	at      time.Time // when the value was read
	tried   time.Time // when the last read began
	took    time.Duration
	err     error
	started time.Time // when the read of the value began
}

func newCached[T any](r *reads, least time.Duration, read func(context.Context) (T, error)) *cached[T] {
	return &cached[T]{least: least, limit: readLimit, read: read, slots: r.slots, changed: r.changed, flight: make(chan struct{}, 1)}
}

// get returns the value, which is read anew if it is old.
func (c *cached[T]) get(ctx context.Context) reading[T] {
	v, fresh, usable := c.now()
	if fresh {
		return v
	}
	select {
	case c.flight <- struct{}{}:
	default:
		if usable {
			return v
		}
		select {
		case c.flight <- struct{}{}:
		case <-ctx.Done():
			v.Err = ctx.Err()
			return v
		}
	}
	defer func() { <-c.flight }()
	if v, fresh, _ = c.now(); fresh { // read by the one before
		return v
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		v.Err = ctx.Err()
		return v
	}
	// Others wait for the value, so that the read continues without the viewer who began it.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limit)
	defer cancel()
	start := time.Now()
	value, err := c.read(limited)
	c.mu.Lock()
	c.tried, c.took, c.err = start, time.Since(start), err
	if err == nil {
		c.value, c.known, c.at, c.started = value, true, time.Now(), start
	}
	c.mu.Unlock()
	v, _, _ = c.now()
	return v
}

// now returns the value, whether it is fresh, and whether it may be shown although it is not.
func (c *cached[T]) now() (v reading[T], fresh, usable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v = reading[T]{Value: c.value, Known: c.known, Err: c.err}
	if c.known {
		v.Age = time.Since(c.at)
	}
	stale := !c.started.After(time.Unix(0, c.changed.Load()))
	enough := max(c.least, readShare*c.took)
	fresh = !c.tried.IsZero() && time.Since(c.tried) < enough && (!stale || c.err != nil)
	return v, fresh, c.known && !stale
}

// keyed has values by keys, and keeps the newest ones.
type keyed[T any] struct {
	make func(key string) *cached[T]
	mu   sync.Mutex
	all  map[string]*cached[T]
	used []string // the last used last
}

func (k *keyed[T]) get(ctx context.Context, key string) reading[T] {
	k.mu.Lock()
	c := k.all[key]
	if c == nil {
		if c = k.make(key); k.all == nil {
			k.all = map[string]*cached[T]{}
		}
		if k.used = append(k.used, key); len(k.used) > mostKept {
			delete(k.all, k.used[0])
			k.used = k.used[1:]
		}
		k.all[key] = c
	}
	k.mu.Unlock()
	return c.get(ctx)
}
