package falldue_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// InvoiceArgs are the arguments of a task: any type that JSON can hold.
type InvoiceArgs struct {
	Order int `json:"order"`
}

// SendInvoice is a kind of task. Tasks that fail are retried after 1 h, 7.5 h,
// 16.2 h, then ever nearer to 24 h.
var SendInvoice = falldue.NewKind[InvoiceArgs]("invoice.send", falldue.KindConfig{
	Policy:  backoff.Arctan(24 * time.Hour).WithMaxAttempts(20),
	Timeout: time.Minute,
})

func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	folder, err := os.MkdirTemp("", "shop-")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db := sqlx.MustConnect("sqlite", "file:"+filepath.Join(folder, "shop.db")+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	defer db.Close()
	db.MustExec("create table orders (number integer primary key)")

	q, err := falldue.New(db, falldue.Config{}) // asks the server which engine it is
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(ctx); err != nil {
		log.Panic(err)
	}

	// The order and its task commit together, or neither does.
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	tx.MustExec("insert into orders (number) values (42)")
	if _, err := SendInvoice.EnqueueTx(ctx, q, tx, InvoiceArgs{Order: 42}); err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, SendInvoice, func(_ context.Context, t falldue.Task[InvoiceArgs]) error {
		fmt.Printf("attempt %d sends the invoice of order %d\n", t.Attempt, t.Args.Order)
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil { // until ctx ends
		log.Panic(err)
	}
	// Output: attempt 1 sends the invoice of order 42
}
