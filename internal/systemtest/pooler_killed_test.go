package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestPoolerIsKilled: while two workers run tasks through PgBouncer in transaction mode,
// it is killed and started again, and PostgreSQL ends the sessions behind it. Every task
// whose enqueue was acknowledged runs, and what a handler writes in the transaction of
// DoneTx is written once.
func TestPoolerIsKilled(t *testing.T) {
	t.Parallel()
	for driver, setting := range testdb.InOneStep {
		dsn := testdb.DSN(t, testdb.Postgres)
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			pooler := testdb.StartPgBouncer(t, "transaction")
			direct := sqlx.MustOpen("postgres", dsn)
			defer func() { _ = direct.Close() }()
			direct.MustExec("create table effects (task bigint not null)")
			kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.Constant(10 * time.Millisecond)})
			open := func() (*sqlx.DB, *falldue.Queue) {
				db, err := testdb.OpenDSN(driver, pooler.Through(dsn)+"&"+setting)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				db.SetMaxOpenConns(8)
				q, err := falldue.New(db, falldue.Config{Lease: 2 * time.Second, PollInterval: 20 * time.Millisecond, DoneRetention: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				return db, q
			}
			_, producer := open()
			if err := producer.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stopped := make(chan error, 2)
			for range 2 {
				db, worker := open()
				falldue.Handle(worker, kind, func(ctx context.Context, task falldue.Task[int]) error {
					tx, err := db.BeginTxx(ctx, nil)
					if err != nil {
						return err
					}
					defer func() { _ = tx.Rollback() }()
					if _, err := tx.ExecContext(ctx, "insert into effects values ($1)", task.ID); err != nil {
						return err
					}
					if err := task.DoneTx(ctx, tx); err != nil {
						return err
					}
					return tx.Commit()
				})
				go func() { stopped <- worker.Run(ctx) }()
			}

			acknowledged, enough, enqueued := map[int64]bool{}, make(chan struct{}), make(chan struct{})
			go func() {
				defer close(enqueued)
				for {
					select {
					case <-enough:
						return
					case <-time.After(time.Millisecond):
					}
					if receipt, err := kind.Enqueue(t.Context(), producer, 0); err == nil {
						acknowledged[receipt.ID] = true
					}
				}
			}()
			effects := func() (n int) {
				if err := direct.Get(&n, "select count(*)::int from effects"); err != nil {
					t.Fatal(err)
				}
				return n
			}
			for i := range 6 {
				before := effects()
				waitFor(t, "tasks to run between the faults", func() bool { return effects() >= before+20 })
				if i%2 == 0 {
					if err := pooler.Restart(); err != nil {
						t.Fatal(err)
					}
					continue
				}
				direct.MustExec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
			}
			close(enough)
			<-enqueued
			var states []struct {
				ID    int64
				State string
				Ran   int
			}
			waitFor(t, "all tasks to end", func() bool {
				err := direct.Select(&states, "select id, state, (select count(*)::int from effects where task = id) as ran from falldue_tasks")
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range states {
					if s.State != string(falldue.StateDone) {
						return false
					}
				}
				return true
			})
			stop()
			for range 2 {
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			}
			for _, s := range states {
				if s.Ran != 1 {
					t.Errorf("the effect of task %d was written %d times", s.ID, s.Ran)
				}
				delete(acknowledged, s.ID)
			}
			if len(acknowledged) > 0 {
				t.Errorf("%d tasks whose enqueue was acknowledged are lost", len(acknowledged))
			}
		})
	}
}
