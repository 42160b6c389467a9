package dialect_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// sqliteError is an error like those of modernc.org/sqlite.
type sqliteError int

func (e sqliteError) Error() string { return "locked, deadlock, duplicate: texts do not count" }
func (e sqliteError) Code() int     { return int(e) }

func TestClassify(t *testing.T) {
	both := func(code string) []error {
		return []error{&pq.Error{Code: pqerror.Code(code)}, &pgconn.PgError{Code: code}}
	}
	number := func(list ...uint16) (errs []error) {
		for _, n := range list {
			errs = append(errs, &mysql.MySQLError{Number: n})
		}
		return errs
	}
	for _, c := range []struct {
		engine dialect.Name
		errs   []error
		want   dialect.Class
	}{
		{dialect.Postgres, both("40001"), dialect.Contention},
		{dialect.Postgres, both("40P01"), dialect.Contention},
		{dialect.Postgres, both("55P03"), dialect.Contention},
		{dialect.Postgres, both("23505"), dialect.UniqueViolation},
		{dialect.Postgres, both("42P01"), dialect.UndefinedTable},
		{dialect.Postgres, both("53100"), dialect.Unavailable},
		{dialect.Postgres, both("25006"), dialect.ReadOnly},
		{dialect.Postgres, both("0A000"), dialect.StatementStale},
		{dialect.Postgres, slices.Concat(both("53000"), both("58000"), both("58030")), dialect.Unavailable},
		// One function may be forbidden, and the rest work.
		{dialect.Postgres, both("42501"), dialect.Other},
		{dialect.Postgres, both("57P01"), dialect.Disconnected},
		{dialect.Postgres, both("08006"), dialect.Disconnected},
		{dialect.Postgres, slices.Concat(both("57P05"), both("25P03"), both("25P04")), dialect.Disconnected},
		{dialect.Postgres, both("26000"), dialect.PreparedStatementMissing},
		{dialect.Postgres, both("42P05"), dialect.PreparedStatementMissing},
		{dialect.Postgres, both("42601"), dialect.Other},
		{dialect.MySQL, number(1213), dialect.Contention},
		{dialect.MySQL, number(1205, 3101), dialect.Contention},
		{dialect.MariaDB, number(1020), dialect.Contention},
		{dialect.MySQL, number(1062), dialect.UniqueViolation},
		{dialect.MySQL, number(1146), dialect.UndefinedTable},
		{dialect.MySQL, number(1290, 1836, 1792), dialect.ReadOnly},
		{dialect.MySQL, number(1243), dialect.PreparedStatementMissing},
		{dialect.MySQL, number(1615), dialect.StatementStale},
		{dialect.MySQL, number(1026, 1030, 1037, 1038, 1041, 1206, 1226, 1461, 1637), dialect.Unavailable},
		{dialect.MariaDB, number(1969), dialect.Unavailable},
		{dialect.MySQL, number(1053), dialect.Disconnected},
		{dialect.MySQL, number(1203, 4031), dialect.Disconnected},
		{dialect.MariaDB, number(1047), dialect.Disconnected},
		// From vtgate, while it finds no primary.
		{dialect.MySQL, number(1105), dialect.Disconnected},
		{dialect.TiDB, number(1105), dialect.Other},
		{dialect.MariaDB, number(1105), dialect.Other},
		// From a Galera node that was cut off while it committed. The other nodes
		// may have the transaction, so that it must not run again.
		{dialect.MariaDB, number(1180), dialect.Disconnected},
		{dialect.TiDB, number(9007), dialect.Contention},
		{dialect.TiDB, number(8028), dialect.Contention},
		{dialect.TiDB, number(8027), dialect.Unavailable},
		{dialect.TiDB, number(8113), dialect.UndefinedTable},
		{dialect.TiDB, number(9005), dialect.Disconnected},
		{dialect.MySQL, number(1064), dialect.Other},
		{dialect.SQLite, []error{sqliteError(5), sqliteError(6), sqliteError(517), sqliteError(261)}, dialect.Contention},
		{dialect.SQLite, []error{sqliteError(2067), sqliteError(1555)}, dialect.UniqueViolation},
		{dialect.SQLite, []error{sqliteError(13), sqliteError(8), sqliteError(7), sqliteError(778), sqliteError(14)}, dialect.Unavailable},
		{dialect.SQLite, []error{sqliteError(17)}, dialect.StatementStale},
		{dialect.SQLite, []error{sqliteError(1), sqliteError(787)}, dialect.Other},
	} {
		d, err := dialect.Of(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range c.errs {
			if got := d.Classify(fmt.Errorf("wrapped: %w", err)); got != c.want {
				t.Errorf("%s: %T %v is %v, want %v", c.engine, err, err, got, c.want)
			}
		}
	}
	for _, name := range dialect.Names {
		d, err := dialect.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, &net.OpError{Op: "read", Err: errors.New("reset")}} {
			if got := d.Classify(err); got != dialect.Disconnected {
				t.Errorf("%s: %v is %v, want disconnected", name, err, got)
			}
		}
		if got := d.Classify(errors.New("deadlock, lock wait, duplicate key, no such table")); got != dialect.Other {
			t.Errorf("%s: a text is taken for %v", name, got)
		}
	}
}

// TestClassifyReal provokes errors on real servers, where one line is enough.
func TestClassifyReal(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, name := range testdb.Drivers(engine) {
			db := testdb.OpenDriver(t, engine, name)
			s, err := dialect.Probe(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("create table once (id integer primary key)"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("insert into once values (1)"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("insert into once values (1)"); s.Classify(err) != dialect.UniqueViolation {
				t.Errorf("%s: a duplicate key is %v: %v", name, s.Classify(err), err)
			}
			if _, err := db.Exec("select * from nowhere"); s.Classify(err) != dialect.UndefinedTable && engine != testdb.SQLite {
				t.Errorf("%s: a missing table is %v: %v", name, s.Classify(err), err)
			}
			if engine != testdb.SQLite {
				continue
			}
			one, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = one.Close() })
			two, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = two.Close() })
			for _, statement := range []string{"pragma busy_timeout = 0", "begin immediate"} {
				if _, err := one.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := two.ExecContext(t.Context(), "pragma busy_timeout = 0"); err != nil {
				t.Fatal(err)
			}
			if _, err := two.ExecContext(t.Context(), "begin immediate"); s.Classify(err) != dialect.Contention {
				t.Errorf("%s: a locked database is %v: %v", name, s.Classify(err), err)
			}
		}
	})
}
