package transactions

import (
	"context"
	"errors"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/examples/transactions/ent"
	"github.com/falldue/falldue/examples/transactions/orders"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/pgxqueue"
)

// within stores an order and calls fn with the transaction of a library, and commits
// unless fn fails.
type within func(ctx context.Context, order int, fn func(tx falldue.Tx) error) error

// TestTasksAreSettledInTransactions: by each library, a handler stores an order, settles
// its task and enqueues others, in one transaction. What it rolls back has no effect.
func TestTasksAreSettledInTransactions(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	db, err := testdb.OpenDSN("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.MustExec("create table orders (number integer primary key)")
	gormDB, err := gorm.Open(postgres.New(postgres.Config{Conn: db.DB}))
	if err != nil {
		t.Fatal(err)
	}
	byGorm := func(db *gorm.DB) within {
		return func(ctx context.Context, order int, fn func(tx falldue.Tx) error) error {
			return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Create(&GormOrder{Number: order}).Error, fn(tx.Statement.ConnPool))
			})
		}
	}
	bunDB := bun.NewDB(db.DB, pgdialect.New())
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db.DB)))
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	libraries := map[string]within{
		"gorm":                          byGorm(gormDB),
		"gorm with prepared statements": byGorm(gormDB.Session(&gorm.Session{PrepareStmt: true})),
		"bun": func(ctx context.Context, order int, fn func(tx falldue.Tx) error) error {
			return bunDB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				_, err := tx.NewInsert().Model(&BunOrder{Number: order}).Exec(ctx)
				return errors.Join(err, fn(tx.Tx))
			})
		},
		"ent": func(ctx context.Context, order int, fn func(tx falldue.Tx) error) error {
			tx, err := client.Tx(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := errors.Join(tx.Order.Create().SetID(order).Exec(ctx), fn(tx)); err != nil {
				return err
			}
			return tx.Commit()
		},
		"sqlc": func(ctx context.Context, order int, fn func(tx falldue.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				return errors.Join(orders.New(tx).Insert(ctx, int32(order)), fn(pgxqueue.Tx(tx))) //nolint:gosec // a small number
			})
		},
	}
	q, err := falldue.New(db, falldue.Config{DoneRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	errBack := errors.New("rolled back")
	charge := falldue.NewKind[string]("charge", falldue.KindConfig{Policy: backoff.Constant(0)})
	after := falldue.NewKind[string]("after", falldue.KindConfig{})
	ran := make(chan string, 100)
	falldue.Handle(q, charge, func(ctx context.Context, task falldue.Task[string]) error {
		err := libraries[task.Args](ctx, int(task.ID), func(tx falldue.Tx) error {
			unique := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}, Delay: time.Hour}
			one, err := after.EnqueueTx(ctx, q, tx, task.Args, unique)
			if err != nil || one.Existed {
				return errors.Join(errors.New("its first task existed"), err)
			}
			if again, err := after.EnqueueTx(ctx, q, tx, task.Args, unique); err != nil || again.ID != one.ID || !again.Existed {
				return errors.Join(errors.New("the transaction does not see its task"), err)
			}
			if _, err := after.EnqueueManyTx(ctx, q, tx, []string{"a", "b"}, falldue.EnqueueOptions{Delay: time.Hour}); err != nil {
				return err
			}
			if page, err := ops.New(q).TasksTx(ctx, tx, ops.Filter{Kind: "after"}, ops.ListOptions{After: one.ID - 1}); err != nil || len(page.Tasks) < 3 {
				return errors.Join(errors.New("the transaction does not see its tasks"), err)
			}
			if err := errors.Join(task.SetResult(task.Args), task.DoneTx(ctx, tx)); err != nil {
				return err
			}
			if task.Attempt == 1 {
				return errBack
			}
			return nil
		})
		if err == nil {
			ran <- task.Args
			return errBack // has no effect: the transaction has settled the task
		}
		if !errors.Is(err, errBack) {
			t.Errorf("%s: %v", task.Args, err)
		}
		return err
	})
	ids := map[string]int64{}
	for name := range libraries {
		receipt, err := charge.Enqueue(t.Context(), q, name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = receipt.ID
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	for range libraries {
		select {
		case <-ran:
		case <-time.After(testdb.Patience):
			t.Fatalf("waited %v for a task", testdb.Patience)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for name, id := range ids {
		info, err := q.Task(t.Context(), id)
		if err != nil || info.State != falldue.StateDone || info.Attempts != 2 || string(info.Result) != `"`+name+`"` {
			t.Errorf("%s: %+v (error %v), want it done by the second attempt", name, info, err)
		}
		var stored int
		if err := db.Get(&stored, "select count(*) from orders where number = $1", id); err != nil || stored != 1 {
			t.Errorf("%s: %d orders (error %v), want one", name, stored, err)
		}
	}
	if page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: "after"}, ops.ListOptions{Limit: 100}); err != nil || len(page.Tasks) != 3*len(libraries) {
		t.Errorf("%d other tasks (error %v), want 3 for each library", len(page.Tasks), err)
	}
}
