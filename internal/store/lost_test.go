package store

import (
	"context"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestLostConnectionsAreRecognized: if the server hangs up during any call of a driver, the error is
// classified as a lost connection.
func TestLostConnectionsAreRecognized(t *testing.T) {
	t.Parallel()
	one := statements.Stmt{SQL: "select 1"}
	query := func(ctx context.Context, c *conn) error {
		return c.query(ctx, one, nil, nil, func(row) error { return nil })
	}
	exec := func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, one, nil, nil)
		return err
	}
	eachNetworked(t, func(t *testing.T, s *Store, proxy *testdb.Proxy) {
		for _, call := range []struct {
			name          string
			before, after func(ctx context.Context, c *conn) error // the server hangs up between them
		}{
			{"execText", nil, func(ctx context.Context, c *conn) error { return c.execText(ctx, one.SQL) }},
			{"prepare", nil, query},
			{"query", query, query},
			{"exec", exec, exec},
			{"queryAnew", nil, func(ctx context.Context, c *conn) error {
				return c.queryAnew(ctx, one, nil, nil, func(row) error { return nil })
			}},
		} {
			class := dialect.Class(-1) // where a store acts on it while it holds the connection
			err := s.onConn(t.Context(), func(c *conn) (err error) {
				if call.before != nil {
					if err := call.before(t.Context(), c); err != nil {
						t.Error(err)
					}
				}
				proxy.HangUp()
				defer proxy.Resume()
				c.sent = true // so that there is one try
				err = call.after(t.Context(), c)
				class = s.server.Classify(err)
				return err
			})
			if after := s.server.Classify(err); class != dialect.Disconnected || after != dialect.Disconnected {
				t.Errorf("%s: the error is %v, and %v after the connection was given back, want disconnected: %v", call.name, class, after, err)
			}
			if s.server.Caps.LossWithoutCode && !errors.Is(err, mysql.ErrInvalidConn) {
				t.Errorf("%s: the error is %v, and not the driver's that has no code", call.name, err)
			}
		}
		proxy.HangUp()
		for range 25 { // more than connections were idle
			err := s.onConn(t.Context(), func(c *conn) error { return c.execText(t.Context(), one.SQL) })
			if got := s.server.Classify(err); got != dialect.Disconnected {
				t.Errorf("the error of another connection, or of making one, is %v, want disconnected: %v", got, err)
			}
		}
		if n := s.db.Stats().OpenConnections; n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// TestErrorsOfSoundConnectionsKeepTheirClass: no server sent these errors, and the connection is
// not lost.
func TestErrorsOfSoundConnectionsKeepTheirClass(t *testing.T) {
	t.Parallel()
	eachNetworked(t, func(t *testing.T, s *Store, _ *testdb.Proxy) {
		refused := errors.New("refused")
		for name, f := range map[string]func(c *conn) error{
			"a row that is refused": func(c *conn) error {
				return c.query(t.Context(), statements.Stmt{SQL: "select 1"}, nil, nil, func(row) error { return refused })
			},
			"a mistake in SQL": func(c *conn) error { return c.execText(t.Context(), "select from from") },
		} {
			err := s.transact(t.Context(), f)
			if got := s.server.Classify(err); err == nil || got != dialect.Other {
				t.Errorf("%s is %v, want other: %v", name, got, err)
			}
		}
		if !s.server.Caps.LossWithoutCode {
			return
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, f := range map[string]func(c *conn) error{
			"a cancelled statement":  func(c *conn) error { return c.execText(ended, "select 1") },
			"a cancelled connection": func(*conn) error { _, _, err := s.takeConn(ended); return s.unconnected(err) },
		} {
			err := s.onConn(t.Context(), f)
			if got := s.server.Classify(err); got != dialect.Other || !errors.Is(err, context.Canceled) {
				t.Errorf("%s is %v, want other: %v", name, got, err)
			}
		}
	})
}
