package falldue

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// copyIn stores many rows by COPY, the fastest way into PostgreSQL, in a
// transaction of its own, and returns their ids in the order of entries.
//
// It needs a driver whose statements take lines of COPY, as lib/pq's do; pgx has
// a method of its connections for that, whose types only its importers can name. It also needs the right to use the sequence of the
// ids, which an INSERT does not. Unless it sent the commit, it left nothing
// behind, and the caller takes the ordinary way.
func (s *store) copyIn(ctx context.Context, entries []entry) (ids []int64, sent bool, err error) {
	err = s.transact(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		// Raw must not see that the connection is dead: it would close that, and
		// wait for ever for the transaction, which has it.
		var failed error
		err := conn.Raw(func(dc any) error {
			ids, failed = s.copyOn(ctx, dc, entries)
			return nil
		})
		err = cmp.Or(failed, err)
		if err == nil && s.notify {
			tell := s.stmt("notify", 0, func(int) statements.Stmt { return statements.Notify(s.server) })
			_, err = tx.ExecContext(ctx, tell.SQL, tell.Bind(statements.Values{"channel": s.channel()}, nil)...)
		}
		sent = err == nil // the commit is next
		return err
	})
	if err != nil && !sent && ctx.Err() == nil && s.server.Classify(err) == dialect.Other {
		s.noCopy.Store(true)
	}
	return ids, sent, err
}

// copyOn stores entries by a driver's connection, in its transaction.
func (s *store) copyOn(ctx context.Context, dc any, entries []entry) ([]int64, error) {
	ids, now, err := s.newIDs(ctx, dc, len(entries))
	if err != nil {
		return nil, err
	}
	return ids, s.stream(ctx, dc, entries, ids, now)
}

// newIDs takes ids from the sequence of the tasks, and the database's now.
func (s *store) newIDs(ctx context.Context, dc any, n int) (ids []int64, now int64, err error) {
	stmt := s.stmt("copy ids", 0, func(int) statements.Stmt { return statements.CopyIDs(s.server) })
	args := stmt.Bind(statements.Values{"table": s.tables.Name(s.server, "tasks"), "rows": int64(n)}, nil)
	w, known := s.wire(dc)
	if !known {
		defer w.clear()
	}
	ready, err := w.prepare(ctx, dc, stmt.SQL)
	if err != nil {
		return nil, 0, err
	}
	ids = make([]int64, 0, n)
	err = eachRow(ctx, ready, args, func(row cells) error {
		id, wrong := row.int(0)
		now, err = row.int(1)
		ids = append(ids, id)
		return errors.Join(wrong, err)
	})
	return ids, now, err
}

// stream sends rows as COPY reads them, many at a time.
func (s *store) stream(ctx context.Context, dc any, entries []entry, ids []int64, now int64) (err error) {
	plain, name := allPlain(entries), "copy"
	if plain {
		name = "copy plain"
	}
	stmt, err := prepare(ctx, dc, s.stmt(name, 0, func(int) statements.Stmt { return statements.Copy(s.server, s.tables, plain) }).SQL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }() // which waits for the server's word
	in, ok := stmt.(copier)
	if !ok {
		return fmt.Errorf("%T takes no lines", stmt)
	}
	var lines []byte
	for i, e := range entries {
		lines = e.appendCopy(lines, plain, ids[i], now)
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

// copier is a driver's statement of COPY, as lib/pq has it.
type copier interface {
	// CopyData sends lines and ends the last.
	CopyData(ctx context.Context, lines string) (driver.Result, error)
}

// copyChunk is how many bytes are sent at a time, or one row if that is more.
const copyChunk = 32 << 10

// copyEscapes is how COPY's text format writes what it gives a meaning.
var copyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// appendCopy appends the entry as a line of statements.Copy, which it does not end.
func (e entry) appendCopy(line []byte, plain bool, id, now int64) []byte {
	line = strconv.AppendInt(line, id, 10)
	line = append(append(line, '\t'), copyEscapes.Replace(e.queue)...)
	line = append(append(line, '\t'), copyEscapes.Replace(e.kind)...)
	if !plain {
		anchor, ok := e.at.(int64)
		if !ok {
			anchor = now + e.delay.Microseconds()
		}
		line = append(append(line, '\t'), copyEscapes.Replace(e.policy)...)
		line = strconv.AppendInt(append(line, '\t'), int64(e.priority), 10)
		line = strconv.AppendInt(append(line, '\t'), int64(e.maxAttempts), 10)
		line = time.UnixMicro(anchor).UTC().AppendFormat(append(line, '\t'), "2006-01-02 15:04:05.999999Z")
	}
	return append(append(line, '\t'), copyEscapes.Replace(e.payload)...)
}
