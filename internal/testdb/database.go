package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Check connects to a server and returns its version. It fails when the
// server does not answer or is of another engine.
func Check(ctx context.Context, engine, dsn string) (version string, err error) {
	if engine == Postgres {
		if _, err := postgresURL(dsn); err != nil {
			return "", err
		}
	}
	err = withServer(ctx, engine, dsn, func(db *sql.DB) error {
		query := "SELECT version()"
		if engine == Postgres {
			query = "SHOW server_version"
		}
		return db.QueryRowContext(ctx, query).Scan(&version)
	})
	if err != nil {
		return "", fmt.Errorf("%s does not answer: %w", engine, err)
	}
	// These have the same protocol: only the version distinguishes them.
	for other, mark := range map[string]string{MariaDB: "MariaDB", TiDB: "TiDB"} {
		is := strings.Contains(version, mark)
		if wanted := engine == other || engine == Galera && other == MariaDB; engine != Postgres && is != wanted {
			return "", fmt.Errorf("the server is %s, and %s was wanted", version, engine)
		}
	}
	if engine == Galera {
		return version, waitForNodes(ctx, dsn)
	}
	return version, nil
}

// create creates an empty database on a server and returns its DSN and name.
func create(ctx context.Context, engine, server string) (dsn, name string, err error) {
	if lendsKeyspaces(engine) {
		return borrow(ctx, server)
	}
	name = "falldue_test_" + strings.ToLower(rand.Text()[:12])
	dsn, err = withDatabase(engine, server, name)
	if err != nil {
		return "", "", err
	}
	if engine == Postgres {
		err = onPostgres(ctx, server, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "CREATE DATABASE "+name+copyFiles(conn))
			return err
		})
	} else {
		err = withServer(ctx, engine, server, func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, "CREATE DATABASE "+name)
			return err
		})
	}
	if err == nil && engine == Galera {
		err = waitForNodes(ctx, server) // a node that does not have it yet would refuse connections
	}
	if err != nil {
		return "", "", fmt.Errorf("testdb: create a database on %s: %w", engine, err)
	}
	return dsn, name, nil
}

// copyFiles is the option by which CREATE DATABASE copies the files of the template. By
// default it writes every page to the log since PostgreSQL 15, with four times the work.
func copyFiles(conn *pgx.Conn) string {
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 15 {
		return " STRATEGY file_copy"
	}
	return ""
}

// waitForNodes waits until each node of a cluster has applied what was committed
// before. Connections to dsn are spread over the nodes.
func waitForNodes(ctx context.Context, dsn string) error {
	seen := map[string]bool{}
	for {
		var node, size string
		err := withServer(ctx, Galera, dsn, func(db *sql.DB) error {
			db.SetMaxOpenConns(1) // both queries must reach the same node
			if err := db.QueryRowContext(ctx, "SELECT @@wsrep_node_name FROM information_schema.schemata LIMIT 1").Scan(&node); err != nil {
				return err
			}
			var name string
			return db.QueryRowContext(ctx, "SHOW STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &size)
		})
		if err != nil {
			return fmt.Errorf("connected to only %d nodes of the cluster: %w", len(seen), err)
		}
		if seen[node] = true; strconv.Itoa(len(seen)) == size {
			return nil
		}
	}
}

// drop drops a database and ends the connections to it that are still open.
func drop(ctx context.Context, engine, server, name string) (err error) {
	if lendsKeyspaces(engine) {
		return giveBack(ctx, server, name)
	}
	if engine == Postgres {
		err = onPostgres(ctx, server, func(conn *pgx.Conn) error { return dropOnPostgres(ctx, conn, name) })
	} else {
		err = withServer(ctx, engine, server, func(db *sql.DB) error {
			if err := killSessions(ctx, db, engine, name); err != nil {
				return err
			}
			_, err := db.ExecContext(ctx, "DROP DATABASE "+name)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("testdb: drop database %s on %s: %w", name, engine, err)
	}
	return nil
}

// dropOnPostgres ends the sessions of a database and keeps new ones out. DROP DATABASE then
// waits for their end. Its option FORCE does the same, but not before PostgreSQL 13.
func dropOnPostgres(ctx context.Context, conn *pgx.Conn, name string) error {
	for try := 1; ; try++ {
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "DROP DATABASE "+name)
		// A pooler may have had a session that was not to be seen yet.
		const inUse = "55006"
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pg.Code != inUse || try == 3 {
			return err
		}
	}
}

// killSessions ends the sessions of a database on MySQL, MariaDB and TiDB. DROP
// DATABASE would wait forever for an open transaction.
func killSessions(ctx context.Context, db *sql.DB, engine, name string) error {
	query := "SELECT id FROM information_schema.processlist WHERE db = ?"
	if engine == MySQL {
		// There the processlist fails with error 3854 while any session runs a
		// statement with a character that utf8mb3 lacks. MariaDB's does not, and its
		// performance schema is off by default.
		query = "SELECT processlist_id FROM performance_schema.threads WHERE processlist_db = ?"
	}
	rows, err := db.QueryContext(ctx, query, name)
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	const noSuchThread = 1094
	const systemThread = 1095 // applies what another node has committed
	for _, id := range ids {
		_, err := db.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
		var my *mysql.MySQLError
		if errors.As(err, &my) && (my.Number == noSuchThread || my.Number == systemThread) {
			continue // it has ended by itself, or will
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// postgresConns are the connections on which databases of PostgreSQL are created and
// dropped, by DSN. They stay open until all tests have ended: a server may need longer for a
// new session than for a new database.
var postgresConns struct {
	sync.Mutex
	free map[string][]*pgx.Conn
}

// onPostgres runs f with a connection of its own.
func onPostgres(ctx context.Context, dsn string, f func(*pgx.Conn) error) error {
	conn := freeConn(dsn)
	if conn == nil || conn.Ping(ctx) != nil {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		if conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			return err
		}
	}
	defer func() {
		if conn.IsClosed() {
			return
		}
		postgresConns.Lock()
		defer postgresConns.Unlock()
		if postgresConns.free == nil {
			postgresConns.free = map[string][]*pgx.Conn{}
		}
		postgresConns.free[dsn] = append(postgresConns.free[dsn], conn)
	}()
	return f(conn)
}

// closePostgresConns closes these connections. After a slow write pgx reads from one in a goroutine, which ends with it.
func closePostgresConns() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	postgresConns.Lock()
	defer postgresConns.Unlock()
	for _, conns := range postgresConns.free {
		for _, conn := range conns {
			_ = conn.Close(ctx)
		}
	}
	postgresConns.free = nil
}

func freeConn(dsn string) *pgx.Conn {
	postgresConns.Lock()
	defer postgresConns.Unlock()
	free := postgresConns.free[dsn]
	if len(free) == 0 {
		return nil
	}
	last := len(free) - 1
	postgresConns.free[dsn] = free[:last]
	return free[last]
}

// withServer runs f with a pool and closes the pool afterwards, so that tests that
// look for leaked goroutines do not find any of testdb's.
func withServer(ctx context.Context, engine, dsn string, f func(*sql.DB) error) error {
	driver := drivers[engine][0]
	if engine == Postgres {
		driver = "pgx" // lib/pq does not stop connecting when its context ends
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	return f(db)
}

func withDatabase(engine, dsn, name string) (string, error) {
	if engine == Postgres {
		u, err := postgresURL(dsn)
		if err != nil {
			return "", err
		}
		u.Path = "/" + name
		return u.String(), nil
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("the DSN of a %s server: %w", engine, err)
	}
	cfg.DBName = name
	return cfg.FormatDSN(), nil
}

func postgresURL(dsn string) (*url.URL, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the DSN of a postgres server must be a URL: postgres://user:password@host:port/database?sslmode=disable")
	}
	return u, nil
}

// sqliteDSN returns the DSN of a new database file. Writers wait for each other for
// ten seconds, readers and the writer do not block each other, and a transaction
// takes the write lock when it begins, because upgrading a read lock later may
// fail. Nothing survives a power failure.
func sqliteDSN(folder string) string {
	// The folder is named after the test, whose name may hold a # or a ?.
	path := url.URL{Path: filepath.ToSlash(filepath.Join(folder, "falldue.db"))}
	return "file:" + path.EscapedPath() +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
}
