package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// copyIn stores many rows by COPY, the fastest way into PostgreSQL, in a transaction
// of its own, and returns their ids in the order of entries. Unless it reports that
// it sent the commit, it stored nothing, and the caller inserts the rows instead.
//
// It needs a driver whose statements take the lines of a COPY, as lib/pq's do. pgx
// has a method of its connections for that, whose types only its importers can name.
// It also needs the right to use the sequence of the ids, which an INSERT does not.
func (s *Store) copyIn(ctx context.Context, entries []Entry) (ids []int64, sent bool, err error) {
	taken := make(chan []int64, 1) // the ids, when the commit is next
	err = s.transact(ctx, func(c *conn) error {
		ids, now, err := s.newIDs(ctx, c, len(entries))
		if err != nil {
			return err
		}
		if err := s.stream(ctx, c, entries, ids, now); err != nil {
			return err
		}
		if s.notify {
			notify := s.fixed("notify", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.Notify(server) })
			err := c.query(ctx, notify, statements.Values{"channel": s.Channel(), "notice": s.notice(entries)}, nil, func(row) error { return nil })
			if err != nil {
				return err
			}
		}
		taken <- ids
		return nil
	})
	select {
	case ids = <-taken:
		return ids, true, err
	default:
	}
	if err != nil && ctx.Err() == nil && s.server.Classify(err) == dialect.Other {
		s.noCopy.Store(true)
	}
	return nil, false, err
}

// newIDs takes n ids from the sequence of the tasks, and returns them with the
// database's time.
func (s *Store) newIDs(ctx context.Context, c *conn, n int) (ids []int64, now int64, err error) {
	stmt := s.fixed("copy ids", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.CopyIDs(server) })
	values := statements.Values{"table": s.tables.Name(s.server, "tasks"), "rows": int64(n)}
	ids = make([]int64, 0, n)
	err = c.query(ctx, stmt, values, nil, func(r row) error {
		id, wrong := r.int(0)
		now, err = r.int(1)
		ids = append(ids, id)
		return errors.Join(wrong, err)
	})
	return ids, now, err
}

// stream sends entries in the format of COPY, many at a time.
func (s *Store) stream(ctx context.Context, c *conn, entries []Entry, ids []int64, now int64) (err error) {
	plain := allPlain(entries)
	text := s.stmt(stmtKey{name: "copy", plain: plain}, func() statements.Stmt { return statements.Copy(s.server, s.tables, plain) }).SQL
	stmt, err := c.prepareByName(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }() // waits until the server has read all
	in, ok := stmt.(copier)
	if !ok {
		return fmt.Errorf("%T cannot send the rows of a COPY", stmt)
	}
	var lines []byte
	for i := range entries {
		lines = statements.AppendCopy(lines, &entries[i], plain, ids[i], now)
		if len(lines) < copyChunk && i < len(entries)-1 {
			lines = append(lines, '\n')
			continue
		}
		if _, err := in.CopyData(ctx, string(lines)); err != nil {
			return err
		}
		lines = lines[:0]
	}
	return nil
}

// copier is a prepared COPY of a driver, such as lib/pq's.
type copier interface {
	// CopyData sends lines, and adds the end of the last line.
	CopyData(ctx context.Context, lines string) (driver.Result, error)
}

// copyChunk is the number of bytes after which lines are sent.
const copyChunk = 32 << 10
