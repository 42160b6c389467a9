package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"  // driver postgres
	_ "modernc.org/sqlite" // driver sqlite, which counted.go wraps

	"github.com/falldue/falldue/internal/testdb"
)

const (
	postgres = testdb.Postgres
	mySQL    = testdb.MySQL
	mariaDB  = testdb.MariaDB
	sqlite   = testdb.SQLite
	tiDB     = testdb.TiDB
)

// server is a database server. Each run of each system has its own database on it.
type server struct {
	engine  string
	dsn     string
	version string
	admin   *sqlx.DB // nil for SQLite
	folder  string   // of SQLite's files
	stop    func()   // ends a server that was started for this run
	proxy   string   // the address of a proxy that delays all that it carries, or ""
	unproxy func()   // ends the proxy
}

// database is a new, empty database.
type database struct {
	server *server
	name   string
	dsn    string
	pooler string // the address of a pooler that pools connect to, or ""
	counts bool   // pools of SQLite count statements
	far    bool   // the DSN leads through the server's proxy
}

// connect connects to the engine's server: by dsn, else by the environment variable
// that the tests use too, else it starts one from the programs of this machine.
func connect(ctx context.Context, engine, dsn string) (*server, error) {
	s := &server{engine: engine, dsn: dsn}
	if engine == sqlite {
		folder, err := os.MkdirTemp("", "falldue-bench-")
		if err != nil {
			return nil, err
		}
		s.folder = folder
		db, err := sqlx.ConnectContext(ctx, "sqlite", ":memory:")
		if err != nil {
			return nil, err
		}
		defer db.Close()
		return s, db.GetContext(ctx, &s.version, "select sqlite_version()")
	}
	if s.dsn == "" {
		s.dsn = os.Getenv(testdb.ServerVariable(engine))
	}
	if s.dsn == "" {
		var err error
		if s.dsn, s.stop, err = start(ctx, engine); err != nil {
			return nil, err
		}
	}
	var err error
	if s.version, err = testdb.Check(ctx, engine, s.dsn); err == nil {
		s.admin, err = sqlx.ConnectContext(ctx, driverOf(engine), s.dsn)
	}
	if err != nil {
		s.close()
	}
	return s, err
}

func driverOf(engine string) string {
	switch engine {
	case postgres:
		return "postgres"
	case sqlite:
		return "sqlite"
	}
	return "mysql"
}

// startProxy starts a proxy in front of the server.
func (s *server) startProxy(ctx context.Context, roundTrip time.Duration) error {
	address, err := addressIn(s.engine, s.dsn)
	if err == nil {
		s.proxy, s.unproxy, err = startProxy(ctx, address, roundTrip)
	}
	return err
}

// create makes an empty database.
func (s *server) create(ctx context.Context) (database, error) {
	db := database{server: s, name: "falldue_bench_" + strings.ToLower(rand.Text()[:10])}
	switch s.engine {
	case sqlite:
		db.dsn = "file:" + s.folder + "/" + db.name + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"
		return db, nil
	case postgres:
		u, err := url.Parse(s.dsn)
		if err != nil {
			return db, err
		}
		u.Path = "/" + db.name
		db.dsn = u.String()
	default:
		cfg, err := mysql.ParseDSN(s.dsn)
		if err != nil {
			return db, err
		}
		cfg.DBName = db.name
		db.dsn = cfg.FormatDSN()
	}
	_, err := s.admin.ExecContext(ctx, "create database "+db.name)
	return db, err
}

// drop removes the database; nobody may be connected to it.
func (db database) drop(ctx context.Context) error {
	if db.server.engine == sqlite {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(db.server.folder + "/" + db.name + suffix)
		}
		return nil
	}
	stmt := "drop database " + db.name
	if db.server.engine == postgres {
		stmt += " with (force)"
	}
	_, err := db.server.admin.ExecContext(ctx, stmt)
	return err
}

// close closes the connection to the server, and stops a server that was started.
func (s *server) close() {
	if s.admin != nil {
		_ = s.admin.Close()
	}
	if s.unproxy != nil {
		s.unproxy()
	}
	if s.stop != nil {
		s.stop()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// open returns a pool on the database.
func (db database) open() (*sqlx.DB, error) {
	if db.counts && db.server.engine == sqlite {
		return db.openBy(countedDriver)
	}
	return db.openBy(driverOf(db.server.engine))
}

func (db database) openBy(driver string) (*sqlx.DB, error) {
	dsn := db.dsn
	if db.pooler != "" {
		var err error
		if dsn, err = db.pooled("binary_parameters", "yes"); err != nil {
			return nil, err
		}
	}
	pool, err := sqlx.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

// analyze brings the database into the state of one that has been in use for some
// time: its statistics are fresh, and PostgreSQL has vacuumed and written its pages.
func (db database) analyze(ctx context.Context) error {
	if db.server.engine == sqlite {
		return nil // it needs neither
	}
	pool, err := db.open()
	if err != nil {
		return err
	}
	defer pool.Close()
	stmts := []string{"vacuum analyze", "checkpoint"}
	if db.server.engine != postgres {
		if err := pool.SelectContext(ctx, &stmts, "select concat('analyze table `', table_name, '`') from information_schema.tables where table_schema = database()"); err != nil {
			return err
		}
	}
	for _, stmt := range stmts {
		if _, err := pool.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", stmt, err)
		}
	}
	return nil
}

// holdSnapshot opens a transaction that sees the tables as they are now, and
// returns the function that ends it.
func (db database) holdSnapshot(ctx context.Context) (release func(), err error) {
	pool, err := db.open()
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(); _ = pool.Close() }
	begin := map[string][]string{
		postgres: {"begin isolation level repeatable read", "select count(*) from pg_class"},
		mySQL:    {"start transaction with consistent snapshot"},
		mariaDB:  {"start transaction with consistent snapshot"},
		tiDB:     {"start transaction with consistent snapshot"},
		sqlite:   {"begin", "select count(*) from sqlite_master"},
	}
	for _, stmt := range begin[db.server.engine] {
		rows, err := conn.QueryContext(ctx, stmt)
		if err != nil {
			release()
			return nil, err
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}
