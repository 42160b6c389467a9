// Package testdb gives tests fresh, empty databases on real servers.
//
// A test asks for a database with [Open], and does not care where the server comes
// from. FALLDUE_TEST_POSTGRES, FALLDUE_TEST_MYSQL, FALLDUE_TEST_MARIADB and
// FALLDUE_TEST_TIDB hold the DSN of a running server. For an engine without a DSN
// the program in the folder serve finds a server: on a Docker engine, among the
// server programs of this machine, or from Debian's packages. The program is a Go
// module of its own, so that falldue's module does not require a Docker client.
//
// "make test" runs that program once for all packages, so that they share one
// server per engine. Under a plain "go test" each test process runs it when it
// first asks for a database, and the servers end with the process, however that
// ends. "go test -short" needs no server: it runs SQLite alone, which is a file in
// the test's own folder.
//
// FALLDUE_TEST_ENGINES lists the engines, separated by commas. The default is
// postgres, mysql, mariadb and sqlite. TiDB runs only when the variable names it:
// serve builds its server from source, which takes minutes the first time (folder
// tidb). If an engine is not available, its tests fail and say how to get it. "make
// test" then runs the tests of the other engines, and fails in the end; if
// FALLDUE_TEST_ENGINES is set, it fails immediately.
//
// There is also galera, a cluster of MariaDB, which runs the conformance suite alone
// and only when the variable names it:
//
//	FALLDUE_TEST_ENGINES=galera make test PACKAGES='-run TestConformance .'
package testdb

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"  // driver postgres
	_ "modernc.org/sqlite" // driver sqlite
)

// The engines that tests run on.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	MariaDB  = "mariadb"
	SQLite   = "sqlite"
	TiDB     = "tidb"
	// Galera is a cluster of three MariaDB nodes. Connections are spread over
	// the nodes.
	Galera = "galera"
)

// drivers lists the drivers of each engine, the default one first.
var drivers = map[string][]string{
	Postgres: {"postgres", "pgx", PgxPool},
	MySQL:    {"mysql"},
	MariaDB:  {"mysql"},
	SQLite:   {"sqlite"},
	TiDB:     {"mysql"},
	Galera:   {"mysql"},
}

// Patience is for how long a test waits for something that takes milliseconds on an idle machine,
// before it fails. No test measures time by it: a busy machine may be slow.
const Patience = 5 * time.Minute

// Engines returns the engines that this run covers.
func Engines(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		t.Log("testdb: -short covers SQLite alone; make test covers the other engines")
		return []string{SQLite}
	}
	engines, err := RunEngines()
	if err != nil {
		t.Fatal(err)
	}
	return engines
}

// Drivers lists the drivers with which [OpenDriver] opens the engine, the one that
// [Open] uses first.
func Drivers(engine string) []string { return slices.Clone(drivers[engine]) }

// Each runs f as one parallel sub-test per engine of this run.
func Each(t *testing.T, f func(t *testing.T, engine string)) {
	t.Helper()
	for _, engine := range Engines(t) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f(t, engine)
		})
	}
}

// Open opens a new, empty database on the engine with its default driver:
// lib/pq, go-sql-driver/mysql or modernc.org/sqlite. The database is closed and
// dropped when the test ends. Open skips a test whose engine is not covered by this
// run, because of -short or FALLDUE_TEST_ENGINES.
func Open(t testing.TB, engine string) *sqlx.DB {
	t.Helper()
	if len(drivers[engine]) == 0 {
		t.Fatal(unknownEngine(engine))
	}
	return OpenDriver(t, engine, drivers[engine][0])
}

// OpenDriver is [Open] with the named driver. postgres also has "pgx", the
// database/sql driver of pgx, and [PgxPool].
func OpenDriver(t testing.TB, engine, driver string) *sqlx.DB {
	t.Helper()
	if !slices.Contains(drivers[engine], driver) {
		t.Fatalf("testdb: no driver %q for %q; its drivers are %v", driver, engine, drivers[engine])
	}
	db, err := OpenDSN(driver, DSN(t, engine))
	if err != nil {
		t.Fatalf("testdb: open %s with %s: %v", engine, driver, err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("testdb: close %s: %v", engine, err)
		}
	})
	// Many tests share a server of 300 connections. SQLite has one writer at
	// a time, so more connections only wait for each other.
	maxConns := 6
	if engine == SQLite {
		maxConns = 4
	}
	db.SetMaxOpenConns(maxConns)
	KeepIdle(db, maxConns)
	return db
}

// skipUnlessCovered skips a test of an engine that this run does not cover.
func skipUnlessCovered(t testing.TB, engine string) {
	t.Helper()
	if engines := Engines(t); !slices.Contains(engines, engine) {
		if _, known := drivers[engine]; !known {
			t.Fatal(unknownEngine(engine))
		}
		t.Skipf("testdb: %s is not among the engines of this run: %s", engine, strings.Join(engines, ", "))
	}
}

// DSN creates a new, empty database on the engine and returns its data source
// name, for a test that opens it in its own way or passes it to a child process.
// All drivers of an engine accept the same DSN. The database is dropped when the
// test ends, even if connections to it are still open.
func DSN(t testing.TB, engine string) string {
	t.Helper()
	skipUnlessCovered(t, engine)
	if engine == SQLite {
		return sqliteDSN(t.TempDir())
	}
	server, err := Server(engine)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	dsn, name, err := create(ctx, engine, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := drop(ctx, engine, server, name); err != nil {
			t.Error(err)
		}
	})
	return dsn
}
