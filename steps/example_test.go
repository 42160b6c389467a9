package steps_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/steps"
	"github.com/falldue/falldue/tasktest"
)

var (
	ship       = falldue.NewKind[Order]("order.ship", falldue.KindConfig{Policy: backoff.Constant(0)})
	importRows = falldue.NewKind[string]("rows.import", falldue.KindConfig{Policy: backoff.Constant(0)})
)

// Order is an order of a customer.
type Order struct {
	Number int
}

// openQueue makes a queue on a new SQLite database.
func openQueue() (q *falldue.Queue, db *sqlx.DB, closeQueue func()) {
	folder, err := os.MkdirTemp("", "orders-")
	if err != nil {
		log.Panic(err)
	}
	db = sqlx.MustConnect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "orders.db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if q, err = falldue.New(db, falldue.Config{}); err == nil {
		err = q.Migrate(context.Background())
	}
	if err != nil {
		log.Panic(err)
	}
	return q, db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

// chargeCard stands for a call to a payment service.
func chargeCard(_ context.Context, idempotencyKey string) (receipt string, err error) {
	fmt.Println("charged with the key", idempotencyKey)
	return "receipt-1", nil
}

// printLabel stands for a call that fails the first time.
func printLabel(_ context.Context, attempt int) (label string, err error) {
	if attempt == 1 {
		return "", errors.New("the printer is out of paper")
	}
	return "label-1", nil
}

// A handler of two steps. The first one does not run again when the second one has failed.
func ExampleDo() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	falldue.Handle(q, ship, func(ctx context.Context, t falldue.Task[Order]) error {
		receipt, err := steps.Do(ctx, t, "charge", func(ctx context.Context) (string, error) {
			return chargeCard(ctx, fmt.Sprintf("%d-charge", t.ID))
		})
		if err != nil {
			return err
		}
		label, err := steps.Do(ctx, t, "label", func(ctx context.Context) (string, error) {
			return printLabel(ctx, t.Attempt)
		})
		if err != nil {
			return err
		}
		fmt.Println("attempt", t.Attempt, "has", receipt, "and", label)
		stop() // so that this example ends
		return nil
	})
	if _, err := ship.Enqueue(ctx, q, Order{Number: 1}); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// charged with the key 1-charge
	// attempt 2 has receipt-1 and label-1
}

// A step whose writes happen exactly once, since they commit together with its record.
func ExampleDoTx() {
	q, db, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db.MustExec("create table accounts (name text primary key, points integer not null)")
	db.MustExec("insert into accounts values ('ann', 0)")

	falldue.Handle(q, ship, func(ctx context.Context, t falldue.Task[Order]) error {
		points, err := steps.DoTx(ctx, t, "credit", func(ctx context.Context, record func(falldue.Tx, int) error) error {
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // does nothing once it is committed
			if _, err := tx.ExecContext(ctx, "update accounts set points = points + 5 where name = 'ann'"); err != nil {
				return err
			}
			if err := record(tx, 5); err != nil {
				return err
			}
			return tx.Commit()
		})
		if err != nil {
			return err
		}
		if t.Attempt == 1 {
			return errors.New("something fails after the step")
		}
		fmt.Println("credited", points)
		stop() // so that this example ends
		return nil
	})
	if _, err := ship.Enqueue(ctx, q, Order{Number: 1}); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	var points int
	if err := db.Get(&points, "select points from accounts"); err != nil {
		log.Panic(err)
	}
	fmt.Println("ann has", points)
	// Output:
	// credited 5
	// ann has 5
}

// importRow stands for an import that fails at one row the first time.
func importRow(attempt, row int) error {
	if attempt == 1 && row == 25 {
		return errors.New("the connection was reset")
	}
	return nil
}

// An import that continues from the last saved row.
func ExampleDoFrom() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	falldue.Handle(q, importRows, func(ctx context.Context, t falldue.Task[string]) error {
		rows, err := steps.DoFrom(ctx, t, "rows", func(ctx context.Context, next *steps.Cursor[int]) (int, error) {
			fmt.Println("attempt", t.Attempt, "begins at row", next.At())
			for row := next.At(); row < 40; row++ {
				if err := importRow(t.Attempt, row); err != nil {
					return 0, err
				}
				if (row+1)%10 == 0 {
					if err := next.Save(ctx, row+1); err != nil {
						return 0, err
					}
				}
			}
			return 40, nil
		})
		if err != nil {
			return err
		}
		fmt.Println(rows, "rows")
		stop() // so that this example ends
		return nil
	})
	if _, err := importRows.Enqueue(ctx, q, "orders.csv"); err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// attempt 1 begins at row 0
	// attempt 2 begins at row 20
	// 40 rows
}

// Each batch commits together with the cursor, so that each row is written exactly once.
func ExampleCursor_SaveTx() {
	_, db, closeQueue := openQueue()
	defer closeQueue()
	db.MustExec("create table numbers (n integer primary key)")

	writeBatch := func(ctx context.Context, next *steps.Cursor[int]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		for n := next.At(); n < next.At()+10; n++ {
			if _, err := tx.ExecContext(ctx, "insert into numbers (n) values (?)", n); err != nil {
				return err
			}
		}
		if err := next.SaveTx(ctx, tx, next.At()+10); err != nil {
			return err
		}
		return tx.Commit()
	}
	handle := func(ctx context.Context, t falldue.Task[string]) error {
		_, err := steps.DoFrom(ctx, t, "rows", func(ctx context.Context, next *steps.Cursor[int]) (int, error) {
			for next.At() < 40 {
				if err := writeBatch(ctx, next); err != nil {
					return 0, err
				}
				if err := next.Stopping(); err != nil {
					return 0, err
				}
			}
			return next.At(), nil
		})
		return err
	}
	t, record := tasktest.NewTask("numbers")
	if err := handle(context.Background(), t); err != nil {
		log.Panic(err)
	}
	fmt.Printf("%s: %s\n", record.Steps()[0].Name, record.Steps()[0].Result)
	// Output: rows: 40
}

// The recorded steps of a task, for people who look for the reason of a failure.
func ExampleOf() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	falldue.Handle(q, ship, func(ctx context.Context, t falldue.Task[Order]) error {
		_, err := steps.Do(ctx, t, "charge", func(context.Context) (string, error) { return "receipt-1", nil })
		if err != nil {
			return err
		}
		_, err = steps.Do(ctx, t, "label", func(context.Context) (string, error) {
			defer stop() // so that this example ends
			return "", falldue.Discard(errors.New("no such address"))
		})
		return err
	})
	receipt, err := ship.Enqueue(ctx, q, Order{Number: 1})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	list, err := steps.Of(context.Background(), q, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	for _, s := range list {
		fmt.Printf("%d %s done: %v, crashes: %d %s\n", s.Number, s.Name, s.Done, s.Crashes, s.Result)
	}
	if err := steps.Forget(context.Background(), q, receipt.ID); err != nil { // its next attempt runs all steps
		log.Panic(err)
	}
	// Output:
	// 1 charge done: true, crashes: 0 "receipt-1"
	// 2 label done: false, crashes: 0
}
