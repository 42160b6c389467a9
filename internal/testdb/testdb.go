// Package testdb gives tests fresh, empty databases on real servers.
//
// A test asks for a database with [Open]; where the server comes from is not
// its business. A server that FALLDUE_TEST_POSTGRES, FALLDUE_TEST_MYSQL,
// FALLDUE_TEST_MARIADB or FALLDUE_TEST_TIDB names by its DSN is used as it is.
// For an engine with no such DSN the program in the folder serve finds one: on
// a Docker engine, among the server programs of this machine, or from Debian's
// packages.
//
// "make test" runs that program once around all packages, so they share one
// server per engine. Under a plain "go test" each test process runs it for
// itself, at the first database it asks for, and the servers end with the
// process, however it ends. "go test -short" needs no server: it runs SQLite
// alone, which is a file in the test's own folder.
//
// FALLDUE_TEST_ENGINES chooses the engines, separated by commas. The default
// is postgres, mariadb and sqlite, and mysql where a DSN, a Docker engine or a
// mysqld program is at hand: Debian has no package of MySQL. TiDB is only ever
// run when it is asked for: serve builds its server from source, which takes
// minutes the first time (folder tidb). An engine that is wanted and cannot be
// had fails the test and says how to get it.
//
// There is also galera, which is MariaDB as a cluster, for the conformance suite
// and only when it is asked for:
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
	// Galera is MariaDB as a cluster of three nodes, over which connections
	// are spread.
	Galera = "galera"
)

// drivers lists the drivers by which each engine can be opened, the default
// one first.
var drivers = map[string][]string{
	Postgres: {"postgres", "pgx"},
	MySQL:    {"mysql"},
	MariaDB:  {"mysql"},
	SQLite:   {"sqlite"},
	TiDB:     {"mysql"},
	Galera:   {"mysql"},
}

// Engines returns the engines that this run covers.
func Engines(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		t.Log("testdb: -short covers SQLite alone; make test covers the other engines")
		return []string{SQLite}
	}
	engines, err := wanted()
	if err != nil {
		t.Fatal(err)
	}
	return engines
}

// Drivers lists the drivers by which [OpenDriver] opens the engine, the one
// that [Open] uses first.
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

// Open opens a new, empty database on the engine by its default driver:
// lib/pq, go-sql-driver/mysql or modernc.org/sqlite. The end of the test
// closes and drops it. A test that opens an engine outside this run, because
// of -short or FALLDUE_TEST_ENGINES, is skipped.
func Open(t testing.TB, engine string) *sqlx.DB {
	t.Helper()
	if len(drivers[engine]) == 0 {
		t.Fatal(unknownEngine(engine))
	}
	return OpenDriver(t, engine, drivers[engine][0])
}

// OpenDriver is [Open] with the driver named: postgres is also reached by
// "pgx", the database/sql driver of pgx.
func OpenDriver(t testing.TB, engine, driver string) *sqlx.DB {
	t.Helper()
	if !slices.Contains(drivers[engine], driver) {
		t.Fatalf("testdb: no driver %q for %q; its drivers are %v", driver, engine, drivers[engine])
	}
	db, err := sqlx.Open(driver, DSN(t, engine))
	if err != nil {
		t.Fatalf("testdb: open %s by %s: %v", engine, driver, err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("testdb: close %s: %v", engine, err)
		}
	})
	// Many tests share a server of 300 connections. SQLite has one writer at
	// a time, so more connections only wait for each other.
	most := 16
	if engine == SQLite {
		most = 4
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
}

// DSN makes a new, empty database on the engine and returns its data source
// name, for a test that opens it in its own way or hands it to a child
// process. All drivers of an engine take the same DSN. The end of the test
// drops the database, also under connections that are still open.
func DSN(t testing.TB, engine string) string {
	t.Helper()
	if engines := Engines(t); !slices.Contains(engines, engine) {
		if _, known := drivers[engine]; !known {
			t.Fatal(unknownEngine(engine))
		}
		t.Skipf("testdb: %s is not among the engines of this run: %s", engine, strings.Join(engines, ", "))
	}
	if engine == SQLite {
		return sqliteDSN(t.TempDir())
	}
	server, err := serverOf(engine)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dsn, name, err := create(ctx, engine, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := drop(ctx, engine, server, name); err != nil {
			t.Error(err)
		}
	})
	return dsn
}
