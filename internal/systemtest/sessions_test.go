package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/queuetest"
)

// TestUnusualSessions runs the whole suite in sessions with settings that other code of
// an application may need.
func TestUnusualSessions(t *testing.T) {
	t.Parallel()
	odd := map[string]string{
		testdb.Postgres: "timezone=Australia%2FLord_Howe&default_transaction_isolation=serializable&DateStyle=SQL%2CDMY&IntervalStyle=sql_standard&extra_float_digits=-15&array_nulls=off&binary_parameters=yes",
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
		refused, lastError := true, "no ?"
		if engine == testdb.TiDB { // to which utf8mb3 is another name of utf8mb4
			refused, lastError = false, "no 😀"
		}
		if _, err := named.Enqueue(t.Context(), q, "😀"); (err != nil && strings.Contains(err.Error(), "utf8mb4")) != refused {
			t.Errorf("a payload with a character that the session may lack: error %v", err)
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
		if j.State != falldue.StateOpen || j.Attempts != 1 || j.LastError != lastError {
			t.Errorf("the task that failed is %s after %d attempts, with error %q", j.State, j.Attempts, j.LastError)
		}
	})
}
