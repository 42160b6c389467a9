package migrations_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// pooled opens a database through a pooler in transaction mode.
func pooled(t *testing.T, pooler *testdb.PgBouncer, driver, dsn string, maxConns int) *sqlx.DB {
	t.Helper()
	db, err := testdb.OpenDSN(driver, pooler.Through(dsn)+"&"+testdb.InOneStep[driver])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(maxConns)
	return db
}

// TestManyBehindPooler: migrators of processes that connect through a pooler, and of
// others that do not, run at the same time, and so do several on one small pool.
func TestManyBehindPooler(t *testing.T) {
	t.Parallel()
	pooler := testdb.StartPgBouncer(t, "transaction")
	for driver := range testdb.InOneStep {
		t.Run(driver, func(t *testing.T) { migrateMany(t, pooler, driver) })
	}
}

func migrateMany(t *testing.T, pooler *testdb.PgBouncer, driver string) {
	dsn := testdb.DSN(t, testdb.Postgres)
	tables := dialect.Tables{Prefix: "falldue_", Schema: "new schema"}
	shared := pooled(t, pooler, driver, dsn, 2)
	var all []*migrations.Migrator
	for range 4 {
		direct := sqlx.MustOpen("pgx", dsn)
		t.Cleanup(func() { _ = direct.Close() })
		all = append(all, migrator(t, direct, tables), migrator(t, pooled(t, pooler, driver, dsn, 3), tables), migrator(t, shared, tables))
	}
	var group sync.WaitGroup
	ran := make(chan int, len(all))
	for _, m := range all {
		m.SetLockTimeout(time.Minute)
		group.Go(func() {
			n, err := m.Up(t.Context())
			if err != nil {
				t.Errorf("up: %v", err)
			}
			ran <- n
		})
	}
	group.Wait()
	close(ran)
	sum := 0
	for n := range ran {
		sum += n
	}
	if want := len(applied(t, all[0], true)); sum != want {
		t.Errorf("together they ran %d migrations, want %d", sum, want)
	}
	if _, err := all[1].Down(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLockBehindPooler: the migrators behind a pooler and those that are not exclude each
// other, and the first ones need two connections.
func TestLockBehindPooler(t *testing.T) {
	t.Parallel()
	pooler := testdb.StartPgBouncer(t, "transaction")
	for driver := range testdb.InOneStep {
		t.Run(driver, func(t *testing.T) { lockBehindPooler(t, pooler, driver) })
	}
}

func lockBehindPooler(t *testing.T, pooler *testdb.PgBouncer, driver string) {
	dsn := testdb.DSN(t, testdb.Postgres)
	direct := sqlx.MustOpen("postgres", dsn)
	defer func() { _ = direct.Close() }()
	m := migrator(t, pooled(t, pooler, driver, dsn, 3), usual)
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := direct.Get(&n, "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"); err != nil || n > 0 {
		t.Errorf("%d locks are left (error %v)", n, err)
	}
	conn, err := direct.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := migrator(t, direct, usual).Lock(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	m.SetLockTimeout(100 * time.Millisecond)
	if _, err := m.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "is held by server process") {
		t.Errorf("while another migrates: error %v, want one that names the holder of the lock", err)
	}

	server, err := dialect.Probe(t.Context(), pooled(t, pooler, driver, dsn, 3))
	if err != nil {
		t.Fatal(err)
	}
	one, err := migrations.New(pooled(t, pooler, driver, dsn, 1).DB, server, usual)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "SetMaxOpenConns") {
		t.Errorf("on a pool of one connection: error %v, want one that says what to change", err)
	}
}

// TestLostLockIsReported: the session loses the lock during a migration, as when a
// multiplexer changes it.
func TestLostLockIsReported(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		lose, ok := map[string]string{
			testdb.Postgres: "select pg_advisory_unlock_all()",
			testdb.MySQL:    "select release_all_locks()", testdb.MariaDB: "select release_all_locks()", testdb.TiDB: "select release_all_locks()",
		}[engine]
		if !ok {
			t.Skip("it has no such locks")
		}
		m := migrator(t, testdb.Open(t, engine), usual)
		if err := m.Add("99999_later.sql", "-- +goose Up\n"+lose+";\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Up(t.Context()); !errors.Is(err, migrations.ErrLockLost) {
			t.Errorf("error %v, want ErrLockLost", err)
		}
	})
}
