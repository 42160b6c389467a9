package falldue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"
)

// wire is a connection of the pool, spoken to without database/sql.
//
// A statement outside a transaction is run again by database/sql when a driver
// calls its connection bad. lib/pq does that also when the statement was sent
// and only its answer got lost: a task is there twice, a claim is made that
// nobody knows of. On the wire nobody repeats anything, a statement stays
// prepared, and rows are read without being converted twice.
type wire struct {
	prepared map[string]driver.Stmt
	answered time.Time // last
}

// maxWires is how many connections a store remembers, or twice as many as there
// are: those that the pool has closed meanwhile are among them.
const maxWires = 200

// trusted is how long a connection that answered is taken for alive. One that
// was silent for longer is asked first, while it costs nothing to take another.
const trusted = time.Second

// once runs a statement that returns rows, by itself and at most once, and
// calls f for every row. After an error it is not known whether the
// statement took effect.
func (s *store) once(ctx context.Context, text string, args []any, f func(cells) error) error {
	for try := 1; ; try++ {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		sent := false
		err = conn.Raw(func(dc any) error {
			w, known := s.wire(dc)
			if !known {
				defer w.clear()
			}
			stmt, err := w.prepare(ctx, dc, text)
			if err != nil {
				return err
			}
			sent = true
			if err := eachRow(ctx, stmt, args, f); err != nil {
				return err
			}
			w.answered = time.Now()
			return nil
		})
		_ = conn.Close() // which gives it back; it says only that it did so before
		if sent || !errors.Is(err, driver.ErrBadConn) || try == maxWires {
			return s.unlessOver(ctx, err)
		}
	}
}

// held runs statements on a connection that the caller holds, and keeps them
// prepared there.
type held struct {
	s    *store
	conn *sql.Conn
}

func (h held) query(ctx context.Context, text string, args []any, f func(cells) error) error {
	return h.raw(ctx, text, func(stmt driver.Stmt) error { return eachRow(ctx, stmt, args, f) })
}

func (h held) exec(ctx context.Context, text string, args []any) (res sql.Result, err error) {
	err = h.raw(ctx, text, func(stmt driver.Stmt) error {
		e, ok := stmt.(driver.StmtExecContext)
		if !ok {
			return fmt.Errorf("%T cannot execute with a context", stmt)
		}
		values, err := named(args)
		if err == nil {
			res, err = e.ExecContext(ctx, values)
		}
		return err
	})
	return res, err
}

func (h held) raw(ctx context.Context, text string, f func(driver.Stmt) error) error {
	return h.conn.Raw(func(dc any) error {
		w, known := h.s.wire(dc)
		if !known {
			defer w.clear()
		}
		stmt, err := w.prepare(ctx, dc, text)
		if err != nil {
			return err
		}
		w.answered = time.Now()
		return f(stmt)
	})
}

// wire returns what is known of a driver's connection, which the caller holds,
// and whether it will be known next time.
func (s *store) wire(dc any) (_ *wire, known bool) {
	if !reflect.TypeOf(dc).Comparable() {
		return &wire{prepared: map[string]driver.Stmt{}}, false // of a driver around the driver
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wires[dc]
	if w == nil {
		if len(s.wires) >= max(maxWires, 2*s.db.Stats().OpenConnections) {
			clear(s.wires)
		}
		w = &wire{prepared: map[string]driver.Stmt{}}
		s.wires[dc] = w
	}
	return w, true
}

// clear frees what is prepared.
func (w *wire) clear() {
	for _, stmt := range w.prepared {
		_ = stmt.Close() // what could not be freed goes with the connection
	}
	clear(w.prepared)
}

// prepare returns a statement that is prepared on the wire. Its error is
// driver.ErrBadConn where the connection is dead.
func (w *wire) prepare(ctx context.Context, dc any, text string) (stmt driver.Stmt, err error) {
	if stmt = w.prepared[text]; stmt != nil {
		if ping, ok := dc.(driver.Pinger); ok && time.Since(w.answered) > trusted {
			err = ping.Ping(ctx)
		}
		return stmt, err
	}
	if len(w.prepared) >= maxPrepared {
		w.clear()
	}
	if stmt, err = prepare(ctx, dc, text); err != nil {
		return nil, err
	}
	w.prepared[text] = stmt
	return stmt, nil
}

// prepare prepares a statement on a driver's connection.
func prepare(ctx context.Context, dc any, text string) (driver.Stmt, error) {
	if c, ok := dc.(driver.ConnPrepareContext); ok {
		return c.PrepareContext(ctx, text)
	}
	return dc.(driver.Conn).Prepare(text)
}

// named turns arguments into what drivers take.
func named(args []any) ([]driver.NamedValue, error) {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values, nil
}

// eachRow runs a statement and calls f for every row.
func eachRow(ctx context.Context, stmt driver.Stmt, args []any, f func(cells) error) (err error) {
	values, err := named(args)
	if err != nil {
		return err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return fmt.Errorf("%T cannot query with a context", stmt)
	}
	rows, err := q.QueryContext(ctx, values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make(cells, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}
