package systemtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestManyTasksAreCopied: many tasks go into PostgreSQL by COPY if the driver supports
// it and the user may use the sequence of the ids, and by INSERT otherwise.
func TestManyTasksAreCopied(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, driver    string
		pooled, limited bool
		want            []string
	}{
		{"by lib/pq", "postgres", false, false, []string{"copy"}},
		{"by lib/pq as behind a pooler", "postgres", true, false, []string{"copy"}},
		{"by pgx", "pgx", false, false, []string{"insert", "insert"}},
		{"by a pool of pgx", testdb.PgxPool, false, false, []string{"copy"}},
		{"by a pool of pgx as behind a pooler", testdb.PgxPool, true, false, []string{"copy"}},
		{"without a right to the sequence", "postgres", false, true, []string{"insert", "insert"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.DSN(t, testdb.Postgres)
			if test.pooled {
				dsn += "&" + testdb.InOneStep[test.driver]
			}
			db, err := testdb.OpenDSN(test.driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Mode: falldue.NotifyInTx}, TransactionPooling: test.pooled})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1) // on which the role is set
			db.MustExec(`create table seen (statement text);
				create function see() returns trigger language plpgsql as $$ begin insert into seen values (split_part(current_query(), ' ', 1)); return null; end $$;
				create trigger see after insert on falldue_tasks for each statement execute function see()`)
			if test.limited {
				limit(t, db)
			}
			kind := falldue.NewKind[int]("copied", falldue.KindConfig{})
			args := make([]int, 501)
			receipts, err := kind.EnqueueMany(t.Context(), q, args)
			if err != nil || len(receipts) != len(args) || !slices.IsSortedFunc(receipts, byID) {
				t.Errorf("%d ids for %d tasks, ascending: %t (error %v)", len(receipts), len(args), slices.IsSortedFunc(receipts, byID), err)
			}
			named := 0
			if err := db.Get(&named, "select count(*)::int from pg_prepared_statements"); err != nil || test.pooled != (named == 0) {
				t.Errorf("behind a pooler: %t, and %d statements are prepared by name (error %v)", test.pooled, named, err)
			}
			db.MustExec("reset role")
			var seen []string
			if err := db.Select(&seen, "select statement from seen"); err != nil || !slices.Equal(seen, test.want) {
				t.Errorf("stored by %q (error %v), want %q", seen, err, test.want)
			}
			if n := 0; db.Get(&n, "select count(*) from falldue_tasks") != nil || n != len(args) {
				t.Errorf("the table holds %d tasks, want %d", n, len(args))
			}
		})
	}
}

// TestCopiedTasksEqualInsertedTasks copies tasks without options, and tasks of which one
// has options, and compares them with tasks that are enqueued one by one.
func TestCopiedTasksEqualInsertedTasks(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[string]("copied", falldue.KindConfig{})
	policy := backoff.Constant(time.Minute)
	for name, options := range map[string]falldue.EnqueueOptions{
		"plain":  {},
		"delay":  {Delay: time.Hour},
		"at":     {RunAt: time.Date(2100, 1, 2, 3, 4, 5, 6000, time.UTC)},
		"other":  {Priority: new(7), MaxAttempts: 9, Queue: "elsewhere"},
		"policy": {Policy: policy},
	} {
		var params []falldue.EnqueueParams
		for range 600 {
			params = append(params, kind.Params("a\tb\\c\n"))
		}
		params[599] = kind.Params("last", options)
		receipts, err := q.EnqueueMany(t.Context(), params...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, i := range []int{0, 598, 599} {
			got, err := q.Task(t.Context(), receipts[i].ID)
			if err != nil {
				t.Fatal(err)
			}
			one, err := q.EnqueueMany(t.Context(), params[i])
			if err != nil {
				t.Fatal(err)
			}
			want, err := q.Task(t.Context(), one[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if late := want.UpdatedAt.Sub(got.UpdatedAt); late < 0 || late > time.Minute {
				t.Errorf("%s, task %d: waits from %v, and from %v when enqueued alone", name, i, got.UpdatedAt, want.UpdatedAt)
			}
			got.ID, got.UpdatedAt, got.CreatedAt, got.Now = want.ID, want.UpdatedAt, want.CreatedAt, want.Now
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, task %d, enqueued alone (-) and with others (+):\n%s", name, i, diff)
			}
		}
	}
}

// limit sets a role on the connection that has the rights on tables that falldue needs,
// and no rights on sequences.
func limit(t *testing.T, db *sqlx.DB) {
	t.Helper()
	var database string
	if err := db.Get(&database, "select current_database()"); err != nil {
		t.Fatal(err)
	}
	role := "limited_" + database
	db.MustExec("create role " + role)
	t.Cleanup(func() { db.MustExec("reset role; drop owned by " + role + "; drop role " + role) })
	db.MustExec("grant select, insert, update, delete on all tables in schema public to " + role)
	db.MustExec("set role " + role)
}

// breaking is lib/pq with connections that break during a COPY.
type breaking struct{ dsn string }

func (b breaking) Connect(ctx context.Context) (driver.Conn, error) {
	connector, err := pq.NewConnector(b.dsn)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	return &breakingConn{plainConn: conn.(plainConn)}, err
}

func (breaking) Driver() driver.Driver { return pq.Driver{} }

// plainConn has the methods of a connection that database/sql uses.
type plainConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type breakingConn struct{ plainConn }

func (c *breakingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.plainConn.PrepareContext(ctx, text)
	if err == nil && strings.HasPrefix(text, "copy") {
		return brokenStmt{stmt}, c.Close()
	}
	return stmt, err
}

type brokenStmt struct{ driver.Stmt }

func (brokenStmt) CopyData(context.Context, string) (driver.Result, error) {
	return nil, driver.ErrBadConn
}

func (brokenStmt) Close() error { return driver.ErrBadConn }

// TestConnectionBreaksDuringCopy: the tasks are then inserted on another connection.
func TestConnectionBreaksDuringCopy(t *testing.T) {
	t.Parallel()
	db := sqlx.NewDb(sql.OpenDB(breaking{testdb.DSN(t, testdb.Postgres)}), "postgres")
	defer db.Close()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	receipts, err := falldue.NewKind[int]("copied", falldue.KindConfig{}).EnqueueMany(t.Context(), q, make([]int, 501))
	if err != nil || len(receipts) != 501 {
		t.Errorf("%d ids (error %v), want 501", len(receipts), err)
	}
	if n := 0; db.Get(&n, "select count(*) from falldue_tasks") != nil || n != 501 {
		t.Errorf("the table holds %d tasks, want 501", n)
	}
	waitFor(t, "all connections to be given back", func() bool { return db.Stats().InUse == 0 }) // a notice may be sent
}
