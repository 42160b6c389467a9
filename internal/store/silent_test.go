package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// eachNetworked runs f for each driver of an engine that has a network, with a pool
// whose connections pass through a proxy.
func eachNetworked(t *testing.T, f func(t *testing.T, s *Store, proxy *testdb.Proxy)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("it has no network")
		}
		for _, name := range testdb.Drivers(engine) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				proxy, dsn := testdb.Through(t, engine, testdb.DSN(t, engine))
				db, err := testdb.OpenDSN(name, dsn)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				testdb.KeepIdle(db, 20)
				f(t, migrated(t, db), proxy)
			})
		}
	})
}

// warm makes n connections idle that the store has used.
func warm(t *testing.T, s *Store, n int) {
	t.Helper()
	var held []*sql.Conn
	for range n {
		c, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = c.Raw(func(dc any) error {
			known, _ := s.conn(dc)
			known.use = &use{}
			return known.query(t.Context(), s.fixed("count", statements.CountTasks), nil, nil, func(row) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for _, c := range held {
		_ = c.Close()
	}
}

// distrust makes the store ping all connections before it uses them, as after a pause.
func distrust(s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.lastAnswer = time.Time{}
	}
}

// waitUntilFree waits until no connection of the pool is in use.
func waitUntilFree(t *testing.T, s *Store, name string) {
	t.Helper()
	deadline, tick := time.After(soon), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.db.Stats().InUse > 0 {
		select {
		case <-deadline:
			t.Fatalf("%s: the connection is still in use", name)
		case <-tick.C:
		}
	}
}

// soon is how long a call that ends by itself may take, on a slow machine.
const soon = testdb.Patience

// TestSilentConnectionEndsWithTheContext: a connection stays open and carries nothing.
// A statement on it ends soon after its context, and its place in the pool is free.
func TestSilentConnectionEndsWithTheContext(t *testing.T) {
	t.Parallel()
	eachNetworked(t, func(t *testing.T, s *Store, proxy *testdb.Proxy) {
		testdb.KeepIdle(s.db, 1) // so that no other connection is silent
		s.discardIdle()
		warm(t, s, 1)                       // pgx tests a connection when it is used for the second time
		long := strings.Repeat("x", 16<<20) // more than the buffers of the connection hold
		for name, do := range map[string]func(context.Context) error{
			"read": func(ctx context.Context) error { _, err := s.Counts(ctx); return err },
			"once": func(ctx context.Context) error { return s.PutChange(ctx, Change{}) },
			"transaction": func(ctx context.Context) error {
				_, _, err := s.Clean(ctx, CleanParams{Queue: "default", Lane: Lane{State: statements.StateDone}, Retention: time.Hour, Limit: MaxBatch})
				return err
			},
			"commit": func(ctx context.Context) error {
				return s.transact(ctx, func(*conn) error { proxy.Silence(); return nil })
			},
			"rollback": func(ctx context.Context) error {
				return s.transact(ctx, func(*conn) error { proxy.Silence(); return context.DeadlineExceeded })
			},
			"seldom": func(ctx context.Context) error { return s.CheckDelays(ctx, []sqlgen.Formula{backoff.Zizq().Delay()}) },
			"write": func(ctx context.Context) error {
				_, err := s.Enqueue(ctx, nil, []Entry{{Queue: "default", Kind: "kind", Payload: `"` + long + `"`}})
				return err
			},
		} {
			warm(t, s, 1)
			if name != "commit" && name != "rollback" {
				proxy.Silence()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			began := time.Now()
			err := do(ctx)
			took := time.Since(began)
			cancel()
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			if took > soon {
				t.Errorf("%s: it ended after %v", name, took)
			}
			if name != "write" { // which lib/pq does not end
				waitUntilFree(t, s, name)
			}
			distrust(s) // on a slow machine the call may not have used the connection
			ctx, cancel = context.WithTimeout(t.Context(), soon)
			_, err = s.Counts(ctx)
			cancel()
			if err != nil {
				t.Errorf("%s: the next statement: %v", name, err)
			}
		}
	})
}

// TestSilentPoolIsFoundOutAtOnce: all connections of a pool have gone silent. The first
// statement that notices this discards all of them.
func TestSilentPoolIsFoundOutAtOnce(t *testing.T) {
	t.Parallel()
	eachNetworked(t, func(t *testing.T, s *Store, proxy *testdb.Proxy) {
		warm(t, s, 20)
		distrust(s)
		proxy.Silence()
		ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
		defer cancel()
		began := time.Now()
		if _, err := s.Counts(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("the first answer came after %v", took)
		}
	})
}

// TestCloseInUse: the store closes no connection of a driver that ends every statement with its context.
// Close of such a driver is not for two goroutines at a time.
func TestCloseInUse(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"postgres": true, testdb.PgxPool: true}
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, name := range testdb.Drivers(engine) {
			c, err := testdb.OpenDriver(t, engine, name).Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = c.Raw(func(dc any) error {
				if closing := closeInUse(dc); (closing != nil) != want[name] {
					t.Errorf("%s, a %T, is closed in use: %v, want %v", name, dc, closing != nil, want[name])
				}
				return nil
			})
			if err := errors.Join(err, c.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}
