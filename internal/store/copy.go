package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// copyIn stores many rows by COPY, the fastest way into PostgreSQL, in a transaction
// of its own, and returns their ids in the order of entries. Unless it reports that
// it sent the commit, it stored nothing, and the caller inserts the rows instead.
//
// copyIn needs a driver that streams the lines of a COPY, as lib/pq and package pgxdb do. pgx's
// own driver of database/sql has no such method with types that other packages can name.
// copyIn also needs the permission to use the sequence of the ids, which an INSERT does not.
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
			if err := s.notifyWithin(ctx, c, len(entries), func(i int) string { return entries[i].Queue }); err != nil {
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
		for text := range strings.SplitSeq(r.text(0), " ") {
			id, wrong := strconv.ParseInt(text, 10, 64)
			if wrong != nil {
				return wrong
			}
			ids = append(ids, id)
		}
		now, err = r.int(1)
		return err
	})
	return ids, now, err
}

// stream sends entries in the format of COPY, many at a time.
func (s *Store) stream(ctx context.Context, c *conn, entries []Entry, ids []int64, now int64) (err error) {
	params := statements.EnqueueParams{Tables: s.tables, Plain: allPlain(entries), Metadata: haveMetadata(entries)}
	lines := copyLines{entries: entries, params: params, ids: ids, now: now}
	text := s.stmt(stmtKey{name: "copy", plain: params.Plain, metadata: params.Metadata}, func() statements.Stmt { return statements.Copy(s.server, params) }).SQL
	if reader, ok := c.driver.(copyReader); ok {
		return reader.CopyFrom(ctx, text, &lines)
	}
	stmt, err := c.prepareByName(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }() // waits until the server has read all
	in, ok := stmt.(copyWriter)
	if !ok {
		return fmt.Errorf("%T cannot send the rows of a COPY", stmt)
	}
	for chunk := lines.next(); len(chunk) > 0; chunk = lines.next() {
		if _, err := in.CopyData(ctx, string(chunk[:len(chunk)-1])); err != nil {
			return err
		}
	}
	return nil
}

// copyReader is a driver's connection that runs a COPY of the lines that it reads, such
// as pgxdb's.
type copyReader interface {
	CopyFrom(ctx context.Context, text string, lines io.Reader) error
}

// copyWriter is a prepared COPY of a driver, such as lib/pq's.
type copyWriter interface {
	// CopyData sends lines, and adds the end of the last line.
	CopyData(ctx context.Context, lines string) (driver.Result, error)
}

// copyLines makes the lines of a COPY. It is an [io.Reader] of them.
type copyLines struct {
	entries []Entry // whose lines are not made yet
	params  statements.EnqueueParams
	ids     []int64 // of these entries
	now     int64

	chunk  []byte
	unread []byte // the end of the chunk
}

// copyChunk is the number of bytes after which lines are sent.
const copyChunk = 32 << 10

// next returns the next lines, about copyChunk bytes, or none at the end. They are valid
// until the next call.
func (l *copyLines) next() []byte {
	l.chunk = l.chunk[:0]
	for len(l.entries) > 0 && len(l.chunk) < copyChunk {
		l.chunk = append(statements.AppendCopy(l.chunk, &l.entries[0], l.params, l.ids[0], l.now), '\n')
		l.entries, l.ids = l.entries[1:], l.ids[1:]
	}
	return l.chunk
}

// Read implements [io.Reader].
func (l *copyLines) Read(into []byte) (n int, err error) {
	if len(l.unread) == 0 {
		if l.unread = l.next(); len(l.unread) == 0 {
			return 0, io.EOF
		}
	}
	n = copy(into, l.unread)
	l.unread = l.unread[n:]
	return n, nil
}
