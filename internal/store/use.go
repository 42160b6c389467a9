package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
)

// cancelDelay is the time between the steps that end a use of the database after its
// context has ended.
const cancelDelay = time.Second

// use is one use of the database. Its caller stops waiting for it when the driver does
// not return after the context has ended: lib/pq waits for a connection that has gone
// silent as long as TCP does.
type use struct {
	mu        sync.Mutex
	driver    any      // the driver's connection, or nil
	closed    bool     // the driver's connection was closed
	abandoned bool     // the caller no longer waits
	reserve   *reserve // whose connection is used, or nil
}

// attend runs fn, and returns its error. When ctx has ended, most drivers return soon.
// If the driver does not, attend closes the connection where it can. That makes the driver
// return, unless it waits to write or to connect. Then attend returns while fn keeps running.
func (s *Store) attend(ctx context.Context, fn func(*use) error) error {
	u := &use{}
	if ctx.Done() == nil || s.server.Caps.Embedded {
		return fn(u)
	}
	done := make(chan error, 1)
	go func() { done <- fn(u) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	for _, step := range []func(){
		func() {}, // a transaction has this time to end
		u.close,
		u.abandon,
	} {
		select {
		case err := <-done:
			return err
		case <-time.After(cancelDelay):
			step()
		}
	}
	return ctx.Err()
}

// begin records the connection that is used from now on, and the reserve that it is
// from, if any.
func (u *use) begin(dc any, from *reserve) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.driver, u.closed, u.reserve = dc, false, from
}

// end is called when the connection is not used any more. It reports whether the connection
// was closed.
func (u *use) end() (closed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.driver = nil
	return u.closed
}

// close closes the driver's connection while it is in use, if the driver allows that. It uses
// a goroutine, since closing blocks while the connection is blocked in a write.
func (u *use) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	if closing := closeInUse(u.driver); closing != nil {
		u.closed = true
		go closing()
	}
}

// closeInUse returns a function that closes a driver's connection while another goroutine
// uses it, or nil if the driver has none. Only lib/pq's Close is such a function: Close of
// other drivers writes to the buffers of the statement that is in progress. A driver whose
// Close gives the connection back to a pool has a method Abort.
func closeInUse(dc any) func() {
	switch c := dc.(type) {
	case interface{ Abort() }:
		return c.Abort
	case driver.Conn:
		if t := reflect.TypeOf(dc); t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "github.com/lib/pq" {
			return func() { _ = c.Close() }
		}
	}
	return nil
}

// abandon records that the caller no longer waits.
func (u *use) abandon() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.abandoned = true
	if u.driver != nil && u.reserve != nil {
		u.reserve.miss() // the connection might not come back for a long time
	}
}

var errAbandoned = errors.New("the caller no longer waits for the rows")

// unlessAbandoned returns a function that calls f as long as the caller waits for the values
// that f writes.
func (u *use) unlessAbandoned(f func(row) error) func(row) error {
	return func(r row) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.abandoned {
			return errAbandoned
		}
		return f(r)
	}
}

// discardTimeout is the longest time that discardIdle takes, and the shortest time
// between two of its runs.
const discardTimeout = time.Second

// discardIdle closes the connections that are idle. Drivers discard connections that
// broke, but not connections to a server that refuses all statements, such as a node of
// a cluster without a majority, or all writes, such as a server that has become a
// replica. A new connection may lead to another server. Silent connections would otherwise
// be found one by one.
func (s *Store) discardIdle() {
	s.mu.Lock()
	early := time.Since(s.discarded) < discardTimeout
	if !early {
		s.discarded = time.Now()
	}
	s.mu.Unlock()
	if early {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	var all sync.WaitGroup
	if below, ok := s.db.Driver().(interface{ DiscardIdle(ctx context.Context) }); ok {
		all.Go(func() { below.DiscardIdle(ctx) })
	}
	for range s.db.Stats().Idle {
		all.Go(func() {
			c, err := s.db.Conn(ctx) // others may take it first
			if err != nil {
				return
			}
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
			_ = c.Close() // an error means that it is closed
		})
	}
	closed := make(chan struct{})
	go func() { all.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// refuses reports whether an error of a connection shows that the server refuses all
// statements or all writes, so that another connection should take its place. A connection
// that was just opened stays, since another would lead to the same server.
func (s *Store) refuses(c *conn, err error) bool {
	if err == nil {
		return false
	}
	class := s.server.Classify(err)
	return class == dialect.Disconnected || class == dialect.ReadOnly && time.Since(c.opened) > discardTimeout
}
