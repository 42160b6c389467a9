package many_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/many"
	"github.com/falldue/falldue/tasktest"
)

// Visit has the arguments of a task.
type Visit struct {
	Shop int    `db:"shop"`
	Page string `db:"page"`
}

var visit = falldue.NewKind[Visit]("visit.store", falldue.KindConfig{Queue: "visits"})

// One statement inserts the rows of many tasks, and the tasks are completed in the same transaction.
func Example() {
	db, closeDB := openDB()
	defer closeDB()
	db.MustExec("create table visits (shop integer, page text)")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	queue, err := falldue.New(db, falldue.Config{
		Queues: map[string]falldue.QueueConfig{"visits": {Concurrency: 3}}, // in production 200, for batches of up to 100
	})
	if err == nil {
		err = queue.Migrate(ctx)
	}
	if err != nil {
		log.Panic(err)
	}

	many.Handle(queue, visit, many.Config[Visit]{Most: 3, Wait: time.Minute}, func(ctx context.Context, b *many.Batch[Visit]) error {
		rows := make([]Visit, len(b.Tasks))
		for i, t := range b.Tasks {
			rows[i] = t.Args
		}
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after a commit
		if _, err := tx.NamedExecContext(ctx, "insert into visits (shop, page) values (:shop, :page)", rows); err != nil {
			return err
		}
		for _, t := range b.Tasks {
			if err := t.DoneTx(ctx, tx); err != nil {
				return err
			}
		}
		return tx.Commit()
	})

	if _, err := visit.EnqueueMany(ctx, queue, []Visit{{1, "/"}, {1, "/tea"}, {2, "/"}}); err != nil {
		log.Panic(err)
	}
	go func() {
		defer stop() // so that this example ends
		for n := 0; n < 3; time.Sleep(time.Millisecond) {
			if err := db.GetContext(ctx, &n, "select count(*) from visits"); err != nil {
				log.Print(err)
				return
			}
		}
	}()
	if err := queue.Run(ctx); err != nil {
		log.Panic(err)
	}
	var n int
	if err := db.GetContext(context.Background(), &n, "select count(*) from visits"); err != nil {
		log.Panic(err)
	}
	fmt.Println(n, "visits are stored")
	// Output: 3 visits are stored
}

// Push has the arguments of a task.
type Push struct{ Device, Text string }

// gateway sends many messages with one request.
type gateway interface {
	Send(ctx context.Context, list []Push) (codes []int, err error)
}

// pushAll returns a handler for many tasks. Each task has its own outcome.
func pushAll(g gateway) func(ctx context.Context, b *many.Batch[Push]) error {
	return func(ctx context.Context, b *many.Batch[Push]) error {
		list := make([]Push, len(b.Tasks))
		for i, t := range b.Tasks {
			list[i] = t.Args
		}
		codes, err := g.Send(ctx, list)
		if err != nil {
			return err // all tasks are retried
		}
		for i, code := range codes {
			switch code {
			case http.StatusOK: // done
			case http.StatusTooManyRequests:
				b.Errs[i] = falldue.RetryAfter(time.Minute, errors.New("the device gets too many messages"))
			case http.StatusGone:
				b.Errs[i] = falldue.Discard(errors.New("the device is not registered"))
			default:
				b.Errs[i] = fmt.Errorf("the gateway returned the code %d", code)
			}
		}
		return nil
	}
}

// fakeGateway answers with codes.
type fakeGateway []int

func (f fakeGateway) Send(context.Context, []Push) ([]int, error) { return f, nil }

// A function for many tasks is tested without a database.
func ExampleNewBatch() {
	ann, _ := tasktest.NewTask(Push{"ann", "hello"})
	bob, _ := tasktest.NewTask(Push{"bob", "hello"})
	b := many.NewBatch(ann, bob)
	err := pushAll(fakeGateway{http.StatusOK, http.StatusGone})(context.Background(), b)
	fmt.Println(err)
	fmt.Println(b.Errs[0])
	fmt.Println(b.Errs[1])
	// Output:
	// <nil>
	// <nil>
	// the device is not registered
}

// openDB opens a new SQLite database.
func openDB() (db *sqlx.DB, closeDB func()) {
	folder, err := os.MkdirTemp("", "visits-")
	if err != nil {
		log.Panic(err)
	}
	db = sqlx.MustConnect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "visits.db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}
