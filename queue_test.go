package falldue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/othersql"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/queuetest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestConformance runs the suite on every engine through every driver.
func TestConformance(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				t.Parallel()
				queuetest.TestQueue(t, queuetest.Harness{
					DSN:  func(t *testing.T) string { return testdb.DSN(t, engine) },
					Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew(driver, dsn) },
				})
			})
		}
	})
}

// listed returns the tasks of a page.
func listed(p ops.Page, err error) ([]falldue.TaskInfo, error) { return p.Tasks, err }

// TestConformanceWithoutAName runs the suite on an engine whose name no code knows, and
// whose server lacks all capabilities that an engine may lack. The cases about workers run
// without each of those that decide how tasks are claimed and settled. The tests of
// internal/statements take away all other capabilities, one by one.
func TestConformanceWithoutAName(t *testing.T) {
	for lack, only := range map[string]string{"everything": "", "lateral": "worker", "update returning": "worker", "row locks": "worker"} {
		t.Run("without "+lack, func(t *testing.T) {
			t.Parallel()
			queuetest.TestQueue(t, queuetest.Harness{
				Only: only,
				DSN:  func(t *testing.T) string { return testdb.DSN(t, testdb.Postgres) },
				Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew("postgres", dsn) },
				New: func(db *sqlx.DB, cfg falldue.Config) (*falldue.Queue, error) {
					server, err := othersql.Probe(t.Context(), db, lack)
					if err != nil {
						return nil, err
					}
					return falldue.NewOn(db, server, cfg)
				},
			})
		})
	}
}

// TestSeveralDatabases: on each engine, the tasks of a tenant and the rows that they write are in the tenant's
// database, and a database that is unavailable delays no other. On Vitess each is a keyspace.
func TestSeveralDatabases(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
		defer stop()
		east, west, away := testdb.Open(t, engine), testdb.Open(t, engine), testdb.Open(t, engine)
		kind := falldue.NewKind[string]("visit", falldue.KindConfig{})
		var all databases
		var ran atomic.Int64
		const tenants = 20
		for _, db := range []*sqlx.DB{east, west} {
			q, err := falldue.New(db, falldue.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			db.MustExecContext(ctx, "create table visits (tenant varchar(20) primary key)")
			insert := db.Rebind("insert into visits (tenant) values (?)")
			falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[string]) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(ctx, insert, task.Args); err != nil {
					return err
				}
				if err := task.DoneTx(ctx, tx); err != nil {
					return err
				}
				if err := tx.Commit(); err != nil {
					return err
				}
				if ran.Add(1) == tenants {
					stop()
				}
				return nil
			})
			all = append(all, q)
		}
		for i := range tenants {
			tenant := fmt.Sprintf("tenant %d", i)
			if _, err := kind.Enqueue(ctx, all.of(tenant), tenant); err != nil {
				t.Fatal(err)
			}
		}
		down, err := falldue.New(away, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		falldue.Handle(down, kind, func(context.Context, falldue.Task[string]) error { return nil })
		if err := away.Close(); err != nil {
			t.Fatal(err)
		}
		append(databases{down}, all...).run(ctx)

		var visited [2][]string
		for i, db := range []*sqlx.DB{east, west} {
			if err := db.SelectContext(t.Context(), &visited[i], "select tenant from visits"); err != nil {
				t.Fatal(err)
			}
			for _, tenant := range visited[i] {
				if all.of(tenant) != all[i] {
					t.Errorf("%s ran on database %d", tenant, i)
				}
			}
		}
		if len(visited[0]) == 0 || len(visited[1]) == 0 || len(visited[0])+len(visited[1]) != tenants {
			t.Errorf("visits %q, want %d on both databases together", visited, tenants)
		}
	})
}
