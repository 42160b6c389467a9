package systemtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/queuetest"
)

// TestPgBouncer runs the suite with pgx through PgBouncer in transaction mode. It runs only its
// cases about transactions with lib/pq, which TestUnusualSessions runs with the same parameter, through a
// pool of pgx, which sends what pgx does, and in session mode, which differs little from no pooler.
func TestPgBouncer(t *testing.T) {
	testdb.DSN(t, testdb.Postgres) // skips the test if PostgreSQL is not selected
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pooler := testdb.StartPgBouncer(t, mode)
			for driver, setting := range testdb.InOneStep {
				only := ""
				setting = "&" + setting
				if mode == "session" || driver != "pgx" {
					only = "transaction"
				}
				if mode == "session" {
					setting = ""
				}
				t.Run(driver, func(t *testing.T) {
					t.Parallel()
					queuetest.TestQueue(t, queuetest.Harness{
						Only: only,
						DSN:  func(t *testing.T) string { return pooler.Through(testdb.DSN(t, testdb.Postgres)) + setting },
						Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew(driver, dsn) },
					})
				})
			}
		})
	}
}

// TestTransactionPoolingIsFound: New finds a pooler in transaction mode, and returns an
// error that names the parameter of the driver if it needs one.
func TestTransactionPoolingIsFound(t *testing.T) {
	t.Parallel()
	direct := testdb.DSN(t, testdb.Postgres)
	for name, pooler := range map[string]*testdb.PgBouncer{
		"session":                  testdb.StartPgBouncer(t, "session"),
		"transaction, round robin": testdb.StartPgBouncer(t, "transaction"),
		"transaction, two":         testdb.StartPgBouncer(t, "transaction", "default_pool_size=2"),
		"transaction, last first":  testdb.StartPgBouncer(t, "transaction", "server_round_robin=0"),
		"transaction, one":         testdb.StartPgBouncer(t, "transaction", "default_pool_size=1"),
	} {
		dsn, inSession := pooler.Through(direct), name == "session"
		for driver, settings := range map[string]map[string]bool{
			"postgres": {"": false, "&binary_parameters=yes": true},
			"pgx": {
				"": false, "&default_query_exec_mode=describe_exec": false,
				"&default_query_exec_mode=exec": true, "&default_query_exec_mode=cache_describe": true, "&default_query_exec_mode=simple_protocol": true,
			},
		} {
			for setting, works := range settings {
				t.Run(name+" "+driver+setting, func(t *testing.T) {
					db := sqlx.MustOpen(driver, dsn+setting)
					defer func() { _ = db.Close() }()
					for range 3 { // later connections share a session with the first
						server, err := dialect.Probe(t.Context(), db)
						if server.Caps.TransactionPooling != (!inSession && works) {
							t.Errorf("it was found: %v (error %v)", server.Caps.TransactionPooling, err)
						}
						checkPoolingError(t, err, inSession || works)
					}
					one := sqlx.MustOpen(driver, dsn+setting)
					defer func() { _ = one.Close() }()
					one.SetMaxOpenConns(1) // with which New cannot find the pooler
					_, err := falldue.New(one, falldue.Config{TransactionPooling: true})
					checkPoolingError(t, err, works)
				})
			}
		}
	}
}

func checkPoolingError(t *testing.T, err error, works bool) {
	t.Helper()
	if works && err == nil {
		return
	}
	if works || !errors.Is(err, dialect.ErrTransactionPooling) ||
		!strings.Contains(err.Error(), "binary_parameters=yes") || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("error %v, works: %v; want an error that names the parameter unless it works", err, works)
	}
}

// TestTransactionPoolingIsFoundBesideOthers: the transactions of other processes come
// between those of a check, and take the sessions that it has freed.
func TestTransactionPoolingIsFoundBesideOthers(t *testing.T) {
	t.Parallel()
	dsn := testdb.StartPgBouncer(t, "transaction").Through(testdb.DSN(t, testdb.Postgres)) + "&binary_parameters=yes"
	others, ctx := sqlx.MustOpen("postgres", dsn), t.Context()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					others.MustExec("select 1")
				}
			}
		})
	}
	db := sqlx.MustOpen("postgres", dsn)
	for i := range 300 {
		if server, err := dialect.Probe(ctx, db); err != nil || !server.Caps.TransactionPooling {
			t.Errorf("check %d found the pooler: %v (error %v)", i, server.Caps.TransactionPooling, err)
			break
		}
	}
	close(stop)
	wg.Wait()
	_, _ = db.Close(), others.Close()
}

// TestTransactionPoolingIsOfPostgres: no other engine has such poolers.
func TestTransactionPoolingIsOfPostgres(t *testing.T) {
	t.Parallel()
	if _, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{TransactionPooling: true}); !errors.Is(err, dialect.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}

// TestLostStatementIsPreparedAgain: a prepared statement may be missing in its session,
// for example because a pooler has reset it. When it is missing again, the error says why;
// see TestMissingStatementsAreExplained of internal/store.
func TestLostStatementIsPreparedAgain(t *testing.T) {
	db := testdb.Open(t, testdb.Postgres)
	db.SetMaxOpenConns(1)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := q.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := ops.New(q).Counts(ctx); err != nil {
		t.Fatal(err)
	}
	db.MustExec("deallocate all")
	if _, err := ops.New(q).Counts(ctx); err != nil {
		t.Error(err)
	}
}
