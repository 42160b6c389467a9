package falldue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// processes opens pools of the same database, each with a queue, as processes do.
func processes(t *testing.T, engine string, n, maxConns int) (queues []*falldue.Queue, pools []*sqlx.DB) {
	t.Helper()
	dsn := testdb.DSN(t, engine)
	for range n {
		db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		q, err := falldue.New(db, falldue.Config{DoneRetention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if len(queues) == 0 {
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.MustExec("create table orders (id int primary key, n int not null)")
			db.MustExec("insert into orders values (1, 0)")
		}
		db.SetMaxOpenConns(maxConns)
		queues, pools = append(queues, q), append(pools, db)
	}
	return queues, pools
}

// TestTransactionsWithOnePolicyDoNotWait: two processes enqueue tasks with the same
// policy in transactions, and lock a row of their own in different order. Neither waits
// for the policy's row, so neither waits for the other for ever.
func TestTransactionsWithOnePolicyDoNotWait(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if s, err := dialect.DefaultServer(dialect.Name(engine)); err != nil || s.Caps.SingleWriter {
			t.Skipf("its transactions that write wait for each other anyway (error %v)", err)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		for _, isThere := range []bool{false, true} {
			for _, maxConns := range []int{0, 1} {
				if maxConns == 1 && !isThere {
					continue // the transaction itself has to store it: see below
				}
				queues, pools := processes(t, engine, 3, maxConns)
				policy := backoff.Constant(time.Duration(maxConns+1) * time.Hour)
				opts := falldue.EnqueueOptions{Policy: policy}
				if isThere {
					if _, err := kind.Enqueue(t.Context(), queues[2], 0, opts); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
				first, second := pools[0].MustBeginTx(ctx, nil), pools[1].MustBeginTx(ctx, nil)
				first.MustExecContext(ctx, "update orders set n = 1 where id = 1")
				if _, err := kind.EnqueueTx(ctx, queues[1], second, 2, opts); err != nil {
					t.Errorf("the second transaction: %v", err)
				}
				if _, err := kind.EnqueueTx(ctx, queues[0], first, 1, opts); err != nil {
					t.Errorf("the first transaction waits for the second, or for nothing: %v", err)
				}
				if err := first.Rollback(); err != nil {
					t.Error(err)
				}
				if _, err := second.ExecContext(ctx, "update orders set n = 2 where id = 1"); err != nil {
					t.Error(err)
				}
				if err := second.Commit(); err != nil {
					t.Error(err)
				}
				cancel()
				if n := 0; pools[2].Get(&n, "select count(*) from falldue_policies") != nil || n != 1 {
					t.Errorf("%d policies are stored, want 1", n)
				}
			}
		}
	})
}

// TestOneConnectionIsEnough: a transaction that has the pool's only connection stores
// the policy itself. Nobody relies on it until the transaction has committed.
func TestOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		queues, pools := processes(t, engine, 1, 1)
		q, db := queues[0], pools[0]
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		policy := backoff.Constant(time.Hour)
		opts := falldue.EnqueueOptions{Policy: policy}
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		for _, commits := range []bool{false, true, true} {
			tx := db.MustBeginTx(ctx, nil)
			for range 2 { // the second finds what the first has stored
				if _, err := kind.EnqueueTx(ctx, q, tx, 1, opts); err != nil {
					t.Fatal(err)
				}
			}
			end := tx.Rollback
			if commits {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		var missing int
		if err := db.Get(&missing, "select count(*) from falldue_tasks where policy not in (select "+quoteKey(engine)+" from falldue_policies)"); err != nil || missing > 0 {
			t.Errorf("%d tasks have a policy that is not stored (error %v)", missing, err)
		}
	})
}

func quoteKey(engine string) string {
	d, err := dialect.Of(dialect.Name(engine))
	if err != nil {
		return err.Error()
	}
	return d.Quote("key")
}

// TestLostPolicyIsStoredAgain: a failover loses the policy that a process has stored
// before. The next enqueue of the process stores it again, and so does a worker that
// has read it, so that tasks run.
func TestLostPolicyIsStoredAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		queues, pools := processes(t, engine, 3, 4)
		enqueuer, reader, later := queues[0], queues[1], queues[2]
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		policy := backoff.Constant(2 * time.Hour)
		opts := falldue.EnqueueOptions{Policy: policy}
		enqueue := func() int64 {
			t.Helper()
			receipt, err := kind.Enqueue(t.Context(), enqueuer, 0, opts)
			if err != nil {
				t.Fatal(err)
			}
			return receipt.ID
		}
		done := func(id int64) {
			t.Helper()
			for end := time.Now().Add(testdb.Patience); ; {
				info, err := enqueuer.Task(t.Context(), id)
				if err != nil || time.Now().After(end) {
					t.Fatalf("task %d is %s (error %v), want done", id, info.State, err)
				}
				if info.State == falldue.StateDone {
					return
				}
			}
		}
		lose := func() { pools[0].MustExec("delete from falldue_policies") }

		run := func(q *falldue.Queue) (stop func()) {
			falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- q.Run(ctx) }()
			return func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}

		stop := run(reader)
		done(enqueue())
		lose()
		if err := falldue.KeepPolicies(t.Context(), reader); err != nil {
			t.Fatal(err)
		}
		stop()

		stop = run(later) // it reads what the other worker has restored
		done(enqueue())
		stop()

		lose()
		falldue.ForgetWhenStored(enqueuer)
		id := enqueue()
		last, err := falldue.New(pools[2], falldue.Config{DoneRetention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		stop = run(last)
		done(id)
		stop()
	})
}

// TestPoliciesAreKeptByManyAtOnce: processes that lose a policy at the same time all
// store it again.
func TestPoliciesAreKeptByManyAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		queues, pools := processes(t, engine, 4, 4)
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		var params []falldue.EnqueueParams
		for i := range 600 {
			policy := backoff.Constant(time.Duration(i+1) * time.Minute)
			params = append(params, kind.Params(i, falldue.EnqueueOptions{Policy: policy}))
		}
		for _, q := range queues {
			if _, err := q.EnqueueMany(t.Context(), params...); err != nil {
				t.Fatal(err)
			}
		}
		pools[0].MustExec("delete from falldue_policies")
		var group sync.WaitGroup
		for _, q := range queues {
			group.Go(func() {
				if err := falldue.KeepPolicies(t.Context(), q); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := 0; pools[0].Get(&n, "select count(*) from falldue_policies") != nil || n != len(params) {
			t.Errorf("%d policies are stored, want %d", n, len(params))
		}
	})
}
