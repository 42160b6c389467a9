package systemtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/queuetest"
)

// TestUnusualSessions runs the whole suite in sessions with settings that other code of
// an application may need.
func TestUnusualSessions(t *testing.T) {
	t.Parallel()
	odd := map[string]string{
		testdb.Postgres: "timezone=Australia%2FLord_Howe&default_transaction_isolation=serializable&DateStyle=SQL%2CDMY&IntervalStyle=sql_standard&extra_float_digits=-15",
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
// connection, where code that needs a second connection waits for ever.
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

// TestEmptyStringsThatAreNullAreRefused: MariaDB has a sql_mode with which no statement of
// falldue works. It is refused before anything is written.
func TestEmptyStringsThatAreNullAreRefused(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.MariaDB) + "?sql_mode=%27ORACLE%2CEMPTY_STRING_IS_NULL%27"
	db := sqlx.MustOpen("mysql", dsn)
	defer func() { _ = db.Close() }()
	_, err := falldue.New(db, falldue.Config{})
	if !errors.Is(err, dialect.ErrUnsupported) || !strings.Contains(err.Error(), "EMPTY_STRING_IS_NULL") {
		t.Errorf("New: error %v, want one that names the mode", err)
	}
}
