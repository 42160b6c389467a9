package falldue

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// copyIn stores many rows by COPY, the fastest way into PostgreSQL, in a
// transaction of its own, and returns their ids in the order of entries.
//
// It needs a driver that streams what a statement "copy … from stdin" is
// executed with, as lib/pq does; pgx has a method of its own for that, which
// database/sql cannot reach. It also needs the right to use the sequence of the
// ids, which an INSERT does not. Unless it sent the commit, it left nothing
// behind, and the caller takes the ordinary way.
func (s *store) copyIn(ctx context.Context, entries []entry) (ids []int64, sent bool, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		made, now, err := s.newIDs(ctx, tx, len(entries))
		if err == nil {
			err = s.stream(ctx, tx, entries, made, now)
		}
		if err == nil && s.notify {
			tell := s.stmt("notify", 0, func(int) sqlgen.Stmt { return sqlgen.Notify(s.server) })
			_, err = tx.ExecContext(ctx, tell.SQL, tell.Bind(sqlgen.Values{"channel": s.channel()}, nil)...)
		}
		ids, sent = made, err == nil // the commit is next
		return err
	})
	if err != nil && !sent && ctx.Err() == nil && s.server.Classify(err) == dialect.Other {
		s.noCopy.Store(true)
	}
	return ids, sent, err
}

// newIDs takes ids from the sequence of the tasks, and the database's now.
func (s *store) newIDs(ctx context.Context, tx *sql.Tx, n int) (ids []int64, now int64, err error) {
	stmt := s.stmt("copy ids", 0, func(int) sqlgen.Stmt { return sqlgen.CopyIDs(s.server) })
	args := stmt.Bind(sqlgen.Values{"table": s.tables.Name(s.server, "tasks"), "rows": int64(n)}, nil)
	ids = make([]int64, 0, n)
	err = plain{tx}.query(ctx, stmt.SQL, args, func(row cells) error {
		id, wrong := row.int(0)
		now, err = row.int(1)
		ids = append(ids, id)
		return errors.Join(wrong, err)
	})
	return ids, now, err
}

// stream sends rows. A driver that cannot do so refuses the first.
func (s *store) stream(ctx context.Context, tx *sql.Tx, entries []entry, ids []int64, now int64) (err error) {
	text := s.stmt("copy", 0, func(int) sqlgen.Stmt { return sqlgen.Copy(s.server, s.tables) }).SQL
	in, err := tx.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for i, e := range entries {
		anchor, ok := e.at.(int64)
		if !ok {
			anchor = now + e.delay.Microseconds()
		}
		_, err := in.ExecContext(ctx, ids[i], e.queue, e.kind, e.policy, int64(e.priority), int64(e.maxAttempts), time.UnixMicro(anchor).UTC(), e.payload)
		if err != nil {
			return err
		}
	}
	_, err = in.ExecContext(ctx) // no more rows
	return err
}
