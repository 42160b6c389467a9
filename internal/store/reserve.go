package store

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// reserve sets one connection of a limited pool aside for leases and settles: handlers may
// hold all other connections indefinitely. The reserve is used only while all other
// connections are in use. A pool has one reserve, however many workers run on it.
type reserve struct {
	workers int // that run on the pool; guarded by reserves.mu

	//nolint:containedctx // it ends with the last worker, not with a call
	ctx    context.Context
	cancel context.CancelFunc
	kept   chan struct{}  // closed when keep has returned
	free   chan *sql.Conn // has the connection while it is not in use
	missed chan struct{}  // signalled when the connection is lost
}

// reserves are the reserves of all pools, since two stores may share a pool.
//
//nolint:gochecknoglobals // so is the pool
var reserves = struct {
	mu   sync.Mutex
	pool map[*sql.DB]*reserve
}{pool: map[*sql.DB]*reserve{}}

const (
	// renewReserve is how often the connection of a reserve is exchanged for another
	// one, so that the pool can close it when it is too old.
	renewReserve = time.Minute
	// reserveTimeout is how long the pool may take to give a connection before the
	// reserve asks again, and how long a worker waits for it when it starts or ends.
	reserveTimeout = time.Second
)

// Reserve keeps a connection in reserve until release is called. It does nothing for a
// pool without a limit, for a pool of one connection, which is needed for all else, and
// where the database has one writer at a time, since writers wait for each other there.
func (s *Store) Reserve() (release func()) {
	if s.server.Caps.SingleWriter || s.pool().MaxOpenConnections < 2 {
		return func() {}
	}
	reserves.mu.Lock()
	r := reserves.pool[s.db.DB]
	if r == nil {
		ctx, cancel := context.WithCancel(context.Background())
		r = &reserve{ctx: ctx, cancel: cancel, kept: make(chan struct{}), free: make(chan *sql.Conn, 1), missed: make(chan struct{}, 1)}
		reserves.pool[s.db.DB] = r
		first := make(chan struct{})
		go s.keep(r, sync.OnceFunc(func() { close(first) }))
		defer waitFor(first) // before handlers can take all connections
	}
	r.workers++
	reserves.mu.Unlock()
	s.reserve.Store(r)
	return func() {
		s.reserve.Store(nil)
		reserves.mu.Lock()
		r.workers--
		last := r.workers == 0
		if last {
			delete(reserves.pool, s.db.DB)
		}
		reserves.mu.Unlock()
		if last {
			r.cancel()
			r.drain()
			waitFor(r.kept)
		}
	}
}

// waitFor waits until c is closed, but not for long.
func waitFor(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(reserveTimeout):
	}
}

// keep takes a connection for a reserve, and another one when it is lost or old. It
// calls taken when the reserve has one.
func (s *Store) keep(r *reserve, taken func()) {
	defer close(r.kept)
	tick := time.NewTicker(renewReserve)
	defer tick.Stop()
	for r.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.ctx, reserveTimeout)
		c, err := s.db.Conn(ctx)
		if err != nil {
			<-ctx.Done() // do not ask again immediately
			cancel()
			continue
		}
		cancel()
		r.drain()
		r.put(c)
		taken()
		for waiting := true; waiting; {
			select {
			case <-r.ctx.Done():
				return
			case <-r.missed:
				waiting = false
			case <-tick.C:
				waiting = s.Busy() // in a busy pool, another goroutine would get the place of the connection
			}
		}
	}
}

// put makes a connection the one in reserve. It gives the connection back to the pool if the
// reserve has another one, or if the last worker has ended.
func (r *reserve) put(c *sql.Conn) {
	select {
	case r.free <- c:
	default:
		_ = c.Close()
	}
	if r.ctx.Err() != nil {
		r.drain()
	}
}

// drain gives the connection in reserve back to the pool.
func (r *reserve) drain() {
	select {
	case c := <-r.free:
		_ = c.Close()
	default:
	}
}

// miss makes keep take another connection.
func (r *reserve) miss() {
	select {
	case r.missed <- struct{}{}:
	default:
	}
}

// take takes the connection in reserve. If the connection is in use, take waits for a while,
// and returns nil if the connection does not become free.
func (r *reserve) take(ctx context.Context, wait time.Duration) *sql.Conn {
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case c := <-r.free:
		return c
	default:
	}
	select {
	case c := <-r.free:
		return c
	case <-over.C:
	case <-ctx.Done():
	}
	return nil
}

// giveBack gives back a connection that [Store.takeConn] took; lost is the error with
// which its use closed it. The reserve is nil for a connection of the pool.
func (r *reserve) giveBack(c *sql.Conn, lost error) {
	switch {
	case r == nil:
		_ = c.Close() // an error means that it is closed
	case lost == nil:
		r.put(c)
	default:
		_ = c.Close()
		r.miss()
	}
}

// pool returns the state of the pool. A driver may have its own pool below database/sql's,
// and other code may use the driver's pool, too.
func (s *Store) pool() sql.DBStats {
	stats := s.db.Stats()
	if below, ok := s.db.Driver().(interface{ Stats() sql.DBStats }); ok {
		own := below.Stats()
		stats.OpenConnections = own.OpenConnections
		if stats.MaxOpenConnections == 0 {
			stats.MaxOpenConnections = own.MaxOpenConnections
		}
		if own.InUse >= own.MaxOpenConnections {
			stats.InUse = stats.MaxOpenConnections
		}
	}
	return stats
}

// Busy reports whether all connections that the pool may open are in use.
func (s *Store) Busy() bool {
	pool := s.pool()
	return pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections
}

// urgentKey is the key of a context whose statements may use the reserve immediately.
type urgentKey struct{}

// urgent returns ctx for statements that leases depend on. They must not wait for locks.
func (s *Store) urgent(ctx context.Context) context.Context {
	if s.reserve.Load() == nil {
		return ctx
	}
	return context.WithValue(ctx, urgentKey{}, true)
}

// takeConn takes a connection from the pool or from its reserve. from is the reserve that the
// connection is from, or nil. If no other connection is free, urgent statements take the
// reserve immediately. Other statements first wait for a connection to be given back, but not
// for long: handlers may hold all connections indefinitely.
//
// Some drivers test a connection that has been idle, and wait for its answer as long as
// ctx allows. So takeConn first waits no longer than a live connection needs.
func (s *Store) takeConn(ctx context.Context) (_ *sql.Conn, from *reserve, err error) {
	r := s.reserve.Load()
	if r != nil && ctx.Value(urgentKey{}) != nil && s.Busy() {
		if c := r.take(ctx, answerTimeout(ctx)); c != nil {
			return c, r, nil
		}
	}
	if !s.server.Caps.Embedded {
		brief, cancel := context.WithTimeout(ctx, answerTimeout(ctx))
		held, err := s.db.Conn(brief)
		late := brief.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			return held, nil, err
		}
		s.discardIdle()
		if r != nil && s.Busy() {
			if c := r.take(ctx, 0); c != nil {
				return c, r, nil
			}
		}
	}
	held, err := s.db.Conn(ctx)
	return held, nil, err
}
