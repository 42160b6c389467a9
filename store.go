package falldue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// store runs sqlgen's statements on the database: it makes each once, prepares
// it once, retries what contention undid, and speaks of tasks in Go's types.
// Everything that reaches the database passes through here.
type store struct {
	db      *sqlx.DB
	server  dialect.Server
	tables  dialect.Tables
	keep    bool          // done tasks stay
	notify  bool          // tell listeners of tasks enqueued
	noCopy  atomic.Bool   // rows cannot be streamed
	noTurns atomic.Bool   // the server has no named locks
	writer  chan struct{} // held by who writes, where there is one at a time

	mu       sync.Mutex
	recounts time.Time // when the next recount may be
	made     map[stmtKey]statements.Stmt
	prepared map[string]*sql.Stmt
	wires    map[any]*wire
}

// stmtKey names a statement that was made: which one, and for how many rows.
type stmtKey struct {
	name string
	room int
}

// maxPrepared bounds what a process keeps prepared on each connection; what is
// beyond runs unprepared.
const maxPrepared = 200

// maxMade bounds the texts a process remembers: tasks may bring any number of
// policies of their own, and each combination of these is a text.
const maxMade = 2000

func newStore(db *sqlx.DB, server dialect.Server, cfg Config) *store {
	return &store{
		db: db, server: server, tables: cfg.tables(), keep: cfg.DoneRetention > 0, notify: cfg.Notify || cfg.Listen != nil,
		writer: make(chan struct{}, 1), made: map[stmtKey]statements.Stmt{}, prepared: map[string]*sql.Stmt{}, wires: map[any]*wire{},
	}
}

// stmt returns the statement of that name with room for n rows, made by make
// when it is first asked for.
func (s *store) stmt(name string, n int, make func(room int) statements.Stmt) statements.Stmt {
	room := 0
	if n > 0 && s.server.Caps.Rows.Grows() {
		room = statements.Room(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stmtKey{name, room}
	stmt, ok := s.made[key]
	if !ok {
		if len(s.made) >= maxMade {
			clear(s.made)
		}
		stmt = make(room)
		s.made[key] = stmt
	}
	return stmt
}

// rowStmt is stmt for the statements that take tables and room alone.
func (s *store) rowStmt(name string, n int, make func(dialect.Server, dialect.Tables, int) statements.Stmt) statements.Stmt {
	return s.stmt(name, n, func(room int) statements.Stmt { return make(s.server, s.tables, room) })
}

// prepare returns the prepared statement of a text, or nil where there are too
// many already.
func (s *store) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt, ok := s.prepared[text]
	full := len(s.prepared) >= maxPrepared
	s.mu.Unlock()
	if ok || full {
		return stmt, nil
	}
	stmt, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.prepared[text]; ok {
		_ = stmt.Close()
		return other, nil
	}
	s.prepared[text] = stmt
	return stmt, nil
}

// execer runs one statement: on the pool, in a transaction of ours, or in the
// caller's.
type execer interface {
	// query calls f for each row, whose cells hold until f returns.
	query(ctx context.Context, text string, args []any, f func(cells) error) error
	exec(ctx context.Context, text string, args []any) (sql.Result, error)
}

// pool runs each statement by itself. database/sql may run it twice: see wire.
type pool struct{ s *store }

func (p pool) rows(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	stmt, err := p.s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return p.s.db.QueryContext(ctx, text, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

func (p pool) query(ctx context.Context, text string, args []any, f func(cells) error) error {
	rows, err := p.rows(ctx, text, args)
	return each(rows, err, f)
}

func (p pool) exec(ctx context.Context, text string, args []any) (sql.Result, error) {
	stmt, err := p.s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	var res sql.Result
	if stmt == nil {
		res, err = p.s.db.ExecContext(ctx, text, args...)
	} else {
		res, err = stmt.ExecContext(ctx, args...)
	}
	return res, p.s.unlessOver(ctx, err)
}

// alone is pool, but what returns rows runs at most once.
type alone struct{ pool }

func (a alone) query(ctx context.Context, text string, args []any, f func(cells) error) error {
	return a.s.once(ctx, text, args, f)
}

// preparedTx is a transaction of database/sql or sqlx, which can run what is
// prepared.
type preparedTx interface {
	Tx
	StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt
}

// inside runs statements in a transaction. It prepares none itself: that would
// take a second connection, which a pool of one does not have.
type inside struct {
	s      *store
	tx     preparedTx
	wanted map[string]bool // texts that were not prepared yet
}

func (i inside) query(ctx context.Context, text string, args []any, f func(cells) error) error {
	var rows *sql.Rows
	var err error
	stmt := i.lookup(text)
	if stmt != nil {
		rows, err = i.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	if stmt == nil || isForeign(err) {
		rows, err = i.tx.QueryContext(ctx, text, args...)
	}
	return each(rows, err, f)
}

func (i inside) exec(ctx context.Context, text string, args []any) (sql.Result, error) {
	if stmt := i.lookup(text); stmt != nil {
		if res, err := i.tx.StmtContext(ctx, stmt).ExecContext(ctx, args...); !isForeign(err) {
			return res, err
		}
	}
	return i.tx.ExecContext(ctx, text, args...)
}

// isForeign tells whether a statement was not sent, since its transaction is of
// another pool than it was prepared in. database/sql has no other sign of that.
func isForeign(err error) bool {
	return err != nil && err.Error() == "sql: Tx.Stmt: statement from different database used"
}

func (i inside) lookup(text string) *sql.Stmt {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	stmt := i.s.prepared[text]
	if stmt == nil && i.wanted != nil && len(i.s.prepared) < maxPrepared {
		i.wanted[text] = true
	}
	return stmt
}

// plain runs statements on whatever it is given, unprepared.
type plain struct{ tx Tx }

func (p plain) query(ctx context.Context, text string, args []any, f func(cells) error) error {
	rows, err := p.tx.QueryContext(ctx, text, args...)
	return each(rows, err, f)
}

func (p plain) exec(ctx context.Context, text string, args []any) (sql.Result, error) {
	return p.tx.ExecContext(ctx, text, args...)
}

// inTx runs fn in a transaction, again and whole when contention undid it.
func (s *store) inTx(ctx context.Context, fn func(execer) error) error {
	return s.write(ctx, func() error {
		if !s.server.Caps.LockRows {
			return s.inImmediate(ctx, fn)
		}
		wanted := map[string]bool{}
		err := s.transact(ctx, func(_ *sql.Conn, tx *sql.Tx) error { return fn(inside{s, tx, wanted}) })
		if err != nil {
			return err
		}
		for text := range wanted {
			_, _ = s.prepare(ctx, text) // it runs unprepared if not
		}
		return nil
	})
}

// transact runs fn in a transaction on a connection. That goes back to the pool only
// if the transaction has certainly ended, and holds nothing else: a server that
// answers and does not serve, such as a node of a cluster without a majority,
// refuses ROLLBACK and COMMIT like all else, and what came next on that
// connection would go into the transaction, or commit it half done.
func (s *store) transact(ctx context.Context, fn func(*sql.Conn, *sql.Tx) error) error {
	conn, tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := fn(conn, tx); err != nil {
		giveBack(conn, tx.Rollback() == nil && !errors.Is(err, errHasTurn))
		return err // which says what went wrong
	}
	err = tx.Commit()
	giveBack(conn, err == nil || s.server.Classify(err) == dialect.Contention)
	return s.unlessOver(ctx, err)
}

// unlessOver is the error of a statement that may have committed, or that ctx
// has ended. When the client cancels a commit that waits for a standby, as
// lib/pq does then, PostgreSQL stops waiting and reports success: the commit
// would not outlive the server.
func (s *store) unlessOver(ctx context.Context, err error) error {
	if err == nil && s.server.Name() == dialect.Postgres {
		return ctx.Err()
	}
	return err
}

// begin begins a transaction on a connection that works: the pool may have some
// that broke while nobody used them.
func (s *store) begin(ctx context.Context) (*sql.Conn, *sql.Tx, error) {
	for more := s.db.Stats().OpenConnections; ; more-- {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err == nil {
			return conn, tx, nil
		}
		giveBack(conn, false)
		if more <= 0 || !errors.Is(err, errBadConn) {
			return nil, nil, err
		}
	}
}

// giveBack returns a connection to the pool, or throws it away.
func giveBack(conn *sql.Conn, sound bool) {
	if !sound {
		_ = conn.Raw(func(any) error { return errBadConn })
	}
	_ = conn.Close() // an error says that it is closed
}

// inImmediate is a transaction that locks the database from its start: one
// that read first could not begin to write once another had written. The
// driver's own transactions begin so only if the DSN says it.
func (s *store) inImmediate(ctx context.Context, fn func(execer) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "begin immediate"); err != nil {
		// It may have begun all the same, when ctx ended.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "rollback")
		return err
	}
	err = fn(held{s, conn})
	if err == nil {
		if _, err = conn.ExecContext(ctx, "commit"); err == nil {
			return nil
		}
	}
	if _, undo := conn.ExecContext(context.WithoutCancel(ctx), "rollback"); undo != nil {
		// A connection that may still be in a transaction must not go back.
		_ = conn.Raw(func(any) error { return errBadConn })
	}
	return err
}

// channel is where tasks enqueued are told of.
func (s *store) channel() string { return s.tables.Prefix + "due" }

// selectInt64s reads the integers in the first column of a result.
func selectInt64s(ctx context.Context, x execer, text string, args []any) (ids []int64, err error) {
	err = x.query(ctx, text, args, func(row cells) error {
		id, err := row.int(0)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// explain adds what to do to the errors that users can do something about.
func (s *store) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case s.server.Classify(err) == dialect.UndefinedTable, s.server.Name() == dialect.SQLite && s.server.Classify(err) == dialect.Other && !s.hasTables():
		return fmt.Errorf("%w (%w)", ErrNotMigrated, err)
	case s.server.Classify(err) == dialect.PreparedStatementMissing:
		return fmt.Errorf("%w (%w)", dialect.ErrTransactionPooling, err)
	}
	return err
}

// hasTables asks SQLite whether the tables are there.
func (s *store) hasTables() bool {
	stmt := s.stmt("count tables", 0, func(int) statements.Stmt { return statements.CountTables(s.server) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n := 0
	err := s.db.QueryRowContext(ctx, stmt.SQL, stmt.Bind(statements.Values{"name": s.tables.Prefix + "tasks"}, nil)...).Scan(&n)
	return err != nil || n > 0
}
