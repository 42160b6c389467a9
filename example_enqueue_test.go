package falldue_test

import (
	"context"
	"fmt"
	"log"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Enqueue stores a task. Its arguments are kept as JSON.
func ExampleKind_Enqueue() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Mail struct {
		To      string `json:"to"`
		Subject string `json:"subject"`
	}
	send := falldue.NewKind[Mail]("mail.send", falldue.KindConfig{})

	receipt, err := send.Enqueue(ctx, q, Mail{To: "ada@example.com", Subject: "Your order"})
	if err != nil {
		log.Panic(err)
	}

	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.Kind, task.State, string(task.Payload))
	// Output:
	// mail.send open {"to":"ada@example.com","subject":"Your order"}
}

// A task that is enqueued in a transaction exists only if the transaction
// commits.
func ExampleKind_EnqueueTx() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})
	db.MustExec("create table orders (number integer primary key)")

	invoice := falldue.NewKind[int]("invoice.send", falldue.KindConfig{})

	// order stores an order, and the task that sends its invoice with it.
	order := func(number int) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if _, err := invoice.EnqueueTx(ctx, q, tx, number); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert into orders (number) values (?)", number); err != nil {
			return err // such as an order with this number
		}
		return tx.Commit()
	}
	for _, number := range []int{41, 42, 41} {
		fmt.Printf("order %d stored: %t\n", number, order(number) == nil)
	}

	page, err := ops.New(q).Tasks(ctx, ops.Filter{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("tasks:", len(page.Tasks))
	// Output:
	// order 41 stored: true
	// order 42 stored: true
	// order 41 stored: false
	// tasks: 2
}

// EnqueueMany stores many tasks of one kind in a few statements, which is much
// faster than one call for each.
func ExampleKind_EnqueueMany() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	newsletter := falldue.NewKind[string]("newsletter.send", falldue.KindConfig{})

	receipts, err := newsletter.EnqueueMany(ctx, q, []string{"ada@example.com", "bob@example.com", "eve@example.com"})
	if err != nil {
		log.Panic(err)
	}

	// The receipts are in the order of the arguments.
	last, err := q.Task(ctx, receipts[2].ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(receipts), "tasks, the last one for", string(last.Payload))
	// Output:
	// 3 tasks, the last one for "eve@example.com"
}

// EnqueueManyTx is EnqueueMany in the application's transaction.
func ExampleKind_EnqueueManyTx() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})

	reminder := falldue.NewKind[string]("reminder.send", falldue.KindConfig{})

	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	if _, err := reminder.EnqueueManyTx(ctx, q, tx, []string{"Ada", "Bob"}); err != nil {
		log.Panic(err)
	}
	if err := tx.Rollback(); err != nil { // the application changes its mind
		log.Panic(err)
	}

	page, err := ops.New(q).Tasks(ctx, ops.Filter{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("tasks:", len(page.Tasks))
	// Output:
	// tasks: 0
}

// EnqueueMany stores tasks of several kinds, all or none. Params makes a task
// that is not stored yet.
func ExampleQueue_EnqueueMany() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Parcel struct{ Order, Weight int }
	var (
		invoice  = falldue.NewKind[int]("invoice.send", falldue.KindConfig{})
		dispatch = falldue.NewKind[Parcel]("parcel.dispatch", falldue.KindConfig{})
	)

	receipts, err := q.EnqueueMany(ctx,
		invoice.Params(42),
		dispatch.Params(Parcel{Order: 42, Weight: 900}),
		dispatch.Params(Parcel{Order: 42, Weight: 250}, falldue.EnqueueOptions{MaxAttempts: 3}),
	)
	if err != nil {
		log.Panic(err)
	}
	for _, r := range receipts {
		task, err := q.Task(ctx, r.ID)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(task.Kind, string(task.Payload), task.MaxAttempts)
	}
	// Output:
	// invoice.send 42 0
	// parcel.dispatch {"Order":42,"Weight":900} 0
	// parcel.dispatch {"Order":42,"Weight":250} 3
}

// EnqueueManyTx takes a transaction of database/sql as well as one of sqlx.
func ExampleQueue_EnqueueManyTx() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})

	var (
		welcome = falldue.NewKind[string]("mail.welcome", falldue.KindConfig{})
		avatar  = falldue.NewKind[string]("avatar.fetch", falldue.KindConfig{})
	)

	tx, err := db.BeginTx(ctx, nil) // a *sql.Tx
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	receipts, err := q.EnqueueManyTx(ctx, tx, welcome.Params("ada"), avatar.Params("ada"))
	if err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	q.Wake() // a worker of this process need not wait for its next poll

	fmt.Println("tasks:", len(receipts))
	// Output:
	// tasks: 2
}
