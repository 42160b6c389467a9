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
	// A value that took t to read is read again after readShare times t at the earliest. This bounds the load on the
	// database.
	readShare = 20
	// readsAtOnce is how many reads of a handler run concurrently.
	readsAtOnce = 4
	// mostKept is how many values of one kind are kept, such as lists of tasks by filter.
	mostKept = 64
)

// reading is a value and its age.
type reading[T any] struct {
	Value T
	Known bool
	Age   time.Duration
	// Err is the error of the last read if it failed: Value is from an earlier read.
	Err error
}

// cached is a value that all viewers share. When the value is old, the next request reads it again. Only one
// read runs at a time. In the meantime, other requests get the earlier value.
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

// get returns the value, and first reads it again if it is old.
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
	if v, fresh, _ = c.now(); fresh { // the request before this one has read it
		return v
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		v.Err = ctx.Err()
		return v
	}
	// Others wait for the value, so the read continues even if the viewer who started it leaves.
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

// now returns the value, whether it is fresh, and whether a value that is not fresh may still be shown.
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
	used []string // most recently used last
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
