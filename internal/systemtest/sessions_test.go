package systemtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/queuetest"
)

// TestUnusualSessions runs the whole suite in sessions with settings that other code of
// an application may need.
func TestUnusualSessions(t *testing.T) {
	t.Parallel()
	odd := map[string]string{
		testdb.Postgres: "timezone=Australia%2FLord_Howe&default_transaction_isolation=serializable&DateStyle=SQL%2CDMY&IntervalStyle=sql_standard&extra_float_digits=-15&binary_parameters=yes",
		testdb.MySQL:    "parseTime=true&loc=America%2FSt_Johns&time_zone=%27%2B09%3A30%27&sql_mode=%27ANSI%2CTRADITIONAL%2CNO_BACKSLASH_ESCAPES%2CPAD_CHAR_TO_FULL_LENGTH%2CTIME_TRUNCATE_FRACTIONAL%2CHIGH_NOT_PRECEDENCE%2CNO_AUTO_VALUE_ON_ZERO%27&transaction_isolation=%27SERIALIZABLE%27&clientFoundRows=true&interpolateParams=false",
		testdb.MariaDB:  "parseTime=true&loc=Asia%2FKathmandu&time_zone=%27-03%3A30%27&sql_mode=%27ORACLE%2CPAD_CHAR_TO_FULL_LENGTH%2CSIMULTANEOUS_ASSIGNMENT%2CTIME_ROUND_FRACTIONAL%2CHIGH_NOT_PRECEDENCE%2CREAL_AS_FLOAT%2CNO_UNSIGNED_SUBTRACTION%27&tx_isolation=%27REPEATABLE-READ%27&multiStatements=true",
		testdb.TiDB:     "parseTime=true&loc=Asia%2FKathmandu&time_zone=%27-03%3A30%27&sql_mode=%27ANSI%2CTRADITIONAL%27&transaction_isolation=%27REPEATABLE-READ%27&clientFoundRows=true&tidb_txn_mode=%27optimistic%27",
		testdb.SQLite:   "_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=case_sensitive_like(1)",
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		queuetest.TestQueue(t, queuetest.Harness{
			DSN: func(t *testing.T) string {
				dsn := testdb.DSN(t, engine)
				join := "?"
				if strings.Contains(dsn, "?") {
					join = "&"
				}
				return dsn + join + odd[engine]
			},
			Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew(testdb.Drivers(engine)[0], dsn) },
		})
	})
}

// TestOneConnection runs the suite's cases about transactions on a pool of one
// connection, where code that needs a second connection waits indefinitely.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		queuetest.TestQueue(t, queuetest.Harness{
			Only: "transaction",
			DSN:  func(t *testing.T) string { return testdb.DSN(t, engine) },
			Open: func(dsn string) (*sqlx.DB, error) {
				db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
				if err == nil {
					db.SetMaxOpenConns(1)
				}
				return db, err
			},
		})
	})
}

// oddSessions are settings with which falldue does not work, and a part of the error that says so.
var oddSessions = []struct{ engines, dsn, set, want string }{
	{"mariadb", "sql_mode=%27ORACLE%2CEMPTY_STRING_IS_NULL%27", "set @@global.sql_mode = 'EMPTY_STRING_IS_NULL'", "EMPTY_STRING_IS_NULL"},
	{"mysql mariadb tidb", "autocommit=0", "set autocommit = 0", "autocommit is 0"},
	{"mysql mariadb", "completion_type=1", "set completion_type = 1", "completion_type is CHAIN"},
	{"mysql mariadb tidb", "charset=utf8mb3,utf8", "set names utf8", "character_set_client is utf8"},
	{"mysql mariadb", "charset=latin1", "set names latin1", "character_set_client is latin1"},
	{"mysql mariadb tidb", "character_set_connection=latin1", "set character_set_connection = latin1", "character_set_connection is latin1"},
}

// TestOddSessionsAreRefused: before anything is written, and by each call that gets such a
// connection later.
func TestOddSessionsAreRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, odd := range oddSessions {
			if !strings.Contains(odd.engines, engine) {
				continue
			}
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, dialect.ErrUnsupported) || !strings.Contains(err.Error(), odd.want) {
					t.Errorf("%s: %s: error %v, want one that says %s", odd.dsn, what, err, odd.want)
				}
			}
			dsn := testdb.DSN(t, engine)
			db := sqlx.MustOpen("mysql", dsn+"?"+odd.dsn)
			t.Cleanup(func() { _ = db.Close() })
			_, err := falldue.New(db, falldue.Config{})
			refused("New", err)

			// Connections of this pool are fine until the setting is made.
			var later atomic.Bool
			config, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			connector, err := mysql.NewConnector(config)
			if err != nil {
				t.Fatal(err)
			}
			pool := sqlx.NewDb(sql.OpenDB(setting{connector, odd.set, &later}), "mysql")
			t.Cleanup(func() { _ = pool.Close() })
			pool.SetMaxIdleConns(0)
			q := migrated(t, pool)
			kind := falldue.NewKind[string]("k", falldue.KindConfig{})
			falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error { return nil })
			if _, err := kind.Enqueue(t.Context(), q, "before"); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(odd.set, "global") {
				continue // it would be for the other tests, too
			}
			later.Store(true)
			_, err = kind.Enqueue(t.Context(), q, "later")
			refused("Enqueue", err)
			refused("Run", q.Run(t.Context()))
			later.Store(false)
			if tasks, err := ops.New(q).Tasks(t.Context(), ops.Filter{}); err != nil || len(tasks.Tasks) != 1 {
				t.Errorf("%s: the tasks are %v (error %v)", odd.dsn, tasks.Tasks, err)
			}
		}
	})
}

// setting makes a setting in the sessions of connections that are opened later.
type setting struct {
	driver.Connector
	set   string
	later *atomic.Bool
}

func (s setting) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err == nil && s.later.Load() {
		_, err = c.(driver.ExecerContext).ExecContext(ctx, s.set, nil)
	}
	return c, err
}

// TestWordsHoldUpNoSuccess: a part of the program changes the character set of a session that
// falldue has checked. Tasks whose results and reports have characters that it lacks are done
// nevertheless, those that fail do so once, and what cannot be stored is refused with a clear error.
func TestWordsHoldUpNoSuccess(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.Postgres || engine == testdb.SQLite {
			return // they convert nothing
		}
		db := sqlx.MustOpen("mysql", testdb.DSN(t, engine))
		defer func() { _ = db.Close() }()
		db.SetMaxOpenConns(1) // one session
		q, err := falldue.New(db, falldue.Config{DoneRetention: falldue.Forever})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[bool]("k", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[bool]) error {
			task.Progress(0.5, "half 😀")
			if task.Args {
				return errors.New("no 😀")
			}
			return task.SetResult("yes 😀")
		})
		good, err := kind.Enqueue(t.Context(), q, false)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := kind.Enqueue(t.Context(), q, true)
		if err != nil {
			t.Fatal(err)
		}
		events := q.Subscribe()
		defer events.Close()
		if _, err := db.ExecContext(t.Context(), "set names utf8mb3"); err != nil {
			if _, err = db.ExecContext(t.Context(), "set names utf8"); err != nil {
				t.Fatal(err)
			}
		}
		named := falldue.NewKind[string]("named", falldue.KindConfig{})
		if _, err := named.Enqueue(t.Context(), q, "😀"); err == nil || !strings.Contains(err.Error(), "utf8mb4") {
			t.Errorf("a payload that cannot be stored: error %v", err)
		}
		stop := runUntil(t, q)
		for ended := 0; ended < 2; {
			select {
			case e := <-events.Events():
				if e.Outcome != "" {
					ended++
				}
			case <-time.After(testdb.Patience):
				t.Fatal("the tasks have not ended")
			}
		}
		stop()
		i, j := info(t, q, good.ID), info(t, q, bad.ID)
		var result string
		if err := json.Unmarshal([]byte(i.Result), &result); i.State != falldue.StateDone || i.Attempts != 1 || err != nil || result != "yes 😀" {
			t.Errorf("the task that succeeded is %s after %d attempts, with result %s", i.State, i.Attempts, i.Result)
		}
		if j.State != falldue.StateOpen || j.Attempts != 1 || j.LastError != "no ?" {
			t.Errorf("the task that failed is %s after %d attempts, with error %q", j.State, j.Attempts, j.LastError)
		}
	})
}
