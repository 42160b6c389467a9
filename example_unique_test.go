package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
)

// While an equal task is not finished, no other one is stored.
func ExampleByFields() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Report struct {
		Customer int    `json:"customer"`
		Reason   string `json:"reason"`
	}
	report := falldue.NewKind[Report]("report.build", falldue.KindConfig{})
	once := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByFields("customer")}}
	receipt, err := report.Enqueue(ctx, q, Report{42, "new order"}, once)
	// receipt.ID is the ID of the new task or, if receipt.Existed, of the task that holds the key.
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("customer 42: task %d existed: %v\n", receipt.ID, receipt.Existed)
	for _, args := range []Report{{42, "new address"}, {43, "new order"}} {
		receipt, err := report.Enqueue(ctx, q, args, once)
		if err != nil {
			log.Panic(err)
		}
		fmt.Printf("customer %d: task %d existed: %v\n", args.Customer, receipt.ID, receipt.Existed)
	}
	// Output:
	// customer 42: task 1 existed: false
	// customer 42: task 1 existed: true
	// customer 43: task 2 existed: false
}

// A task that is unique while it waits sees what the transaction has written that skipped
// another one: it does not start before the commit.
func ExampleUnique_whileWaiting() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})
	db.MustExec("create table documents (number integer primary key, text text not null)")

	index := falldue.NewKind[int]("document.index", falldue.KindConfig{})
	waiting := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), WhileWaiting: true}, Delay: 5 * time.Second}

	// save stores a document, and enqueues the task that indexes it, unless one waits.
	save := func(number int, text string) (falldue.Receipt, error) {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return falldue.Receipt{}, err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if _, err := tx.ExecContext(ctx, "insert or replace into documents (number, text) values (?, ?)", number, text); err != nil {
			return falldue.Receipt{}, err
		}
		receipt, err := index.EnqueueTx(ctx, q, tx, number, waiting)
		if err != nil {
			return falldue.Receipt{}, err
		}
		return receipt, tx.Commit()
	}

	for _, text := range []string{"first draft", "second draft"} {
		receipt, err := save(7, text)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(text, receipt)
	}
	// Output:
	// first draft {1 false}
	// second draft {1 true}
}

// Many tasks are enqueued in one call, each unique in its own way. One of them may be
// refused: then none is stored.
func ExampleUnique_for() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	syncing := falldue.NewKind[string]("calendar.sync", falldue.KindConfig{})
	once := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}}
	digest := falldue.NewKind[string]("digest.send", falldue.KindConfig{})
	daily := falldue.EnqueueOptions{Unique: falldue.Unique{
		By:         falldue.ByKey("digest of ada"),
		For:        24 * time.Hour,
		OnConflict: falldue.ConflictFail,
	}}

	receipts, err := q.EnqueueMany(ctx, syncing.Params("ada", once), syncing.Params("ada", once), digest.Params("ada", daily))
	fmt.Println(receipts, err)

	_, err = q.EnqueueMany(ctx, syncing.Params("bob", once), digest.Params("ada", daily))
	if holder, ok := errors.AsType[*falldue.ExistsError](err); ok && errors.Is(err, falldue.ErrExists) {
		fmt.Println("today's digest is task", holder.ID)
	}
	// Output:
	// [{1 false} {1 true} {2 false}] <nil>
	// today's digest is task 2
}

// A key that For holds is released before its time.
func ExampleKind_ReleaseUnique() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	charge := falldue.NewKind[int]("order.charge", falldue.KindConfig{})
	daily := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), For: 24 * time.Hour}}
	enqueue := func() {
		receipt, err := charge.Enqueue(ctx, q, 42, daily)
		if err != nil {
			log.Panic(err)
		}
		fmt.Printf("task %d existed: %v\n", receipt.ID, receipt.Existed)
	}
	enqueue()
	if err := q.Cancel(ctx, 1); err != nil {
		log.Panic(err)
	}
	enqueue()

	released, err := charge.ReleaseUnique(ctx, q, 42, falldue.ByArgs())
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("released:", released)
	enqueue()
	// Output:
	// task 1 existed: false
	// task 1 existed: true
	// released: true
	// task 2 existed: false
}

// Of equal tasks of one call the first is stored. A call inside a transaction reports the same.
func ExampleByArgs() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})

	thumbnail := falldue.NewKind[string]("thumbnail.make", falldue.KindConfig{})
	once := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}}

	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	receipts, err := thumbnail.EnqueueManyTx(ctx, q, tx, []string{"a.png", "b.png", "a.png"}, once)
	if err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	fmt.Println(receipts)
	// Output:
	// [{1 false} {2 false} {1 true}]
}

// A waiting task can be given the newest arguments. The price is published five minutes after
// the last change.
func ExampleUnique() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Price struct {
		Product string `json:"product"`
		Cents   int    `json:"cents"`
	}
	publish := falldue.NewKind[Price]("price.publish", falldue.KindConfig{})
	newest := falldue.EnqueueOptions{
		Delay:  5 * time.Minute,
		Unique: falldue.Unique{By: falldue.ByFields("product"), OnConflict: falldue.ConflictReplace},
	}

	var receipt falldue.Receipt
	for _, cents := range []int{1000, 900, 950} {
		var err error
		if receipt, err = publish.Enqueue(ctx, q, Price{"lamp", cents}, newest); err != nil {
			log.Panic(err)
		}
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.ID, string(task.Payload))
	// Output:
	// 1 {"product":"lamp","cents":950}
}

// Debounce: the search index of a document is built a minute after the last change, with the last arguments.
func ExampleUnique_debounce() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type change struct {
		Document int    `json:"document"`
		Text     string `json:"text"`
	}
	index := falldue.NewKind[change]("document.index", falldue.KindConfig{})
	last := falldue.Unique{By: falldue.ByFields("document"), WhileWaiting: true, OnConflict: falldue.ConflictReplace}
	debounce := falldue.EnqueueOptions{Unique: last, Delay: time.Minute}
	for _, text := range []string{"h", "he", "hey"} {
		receipt, err := index.Enqueue(ctx, q, change{7, text}, debounce)
		if err != nil {
			log.Panic(err)
		}
		task, err := q.Task(ctx, receipt.ID)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println("task", task.ID, string(task.Payload), "waits:", task.UpdatedAt.After(task.Now))
	}
	// Output:
	// task 1 {"document":7,"text":"h"} waits: true
	// task 1 {"document":7,"text":"he"} waits: true
	// task 1 {"document":7,"text":"hey"} waits: true
}

// Throttle: the first alert of a server is sent immediately, and no other one in the next minute.
func ExampleUnique_throttle() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type alert struct {
		Server string `json:"server"`
		Text   string `json:"text"`
	}
	send := falldue.NewKind[alert]("alert.send", falldue.KindConfig{})
	first := falldue.Unique{By: falldue.ByFields("server"), For: time.Minute}
	throttle := falldue.EnqueueOptions{Unique: first}
	for _, a := range []alert{{"db1", "disk full"}, {"db1", "disk still full"}, {"db2", "disk full"}} {
		receipt, err := send.Enqueue(ctx, q, a, throttle)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(a.Server, a.Text, "is skipped:", receipt.Existed)
	}
	// Output:
	// db1 disk full is skipped: false
	// db1 disk still full is skipped: true
	// db2 disk full is skipped: false
}

// Throttle with a trailing run: the orders of a customer are synchronized a minute after the first change, however many
// changes follow until then. The handler reads the orders, so that it misses none.
func ExampleUnique_throttleTrailing() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type orders struct {
		Customer int `json:"customer"`
	}
	sync := falldue.NewKind[orders]("orders.sync", falldue.KindConfig{})
	pending := falldue.Unique{By: falldue.ByFields("customer"), WhileWaiting: true}
	throttle := falldue.EnqueueOptions{Unique: pending, Delay: time.Minute}
	for range 3 {
		receipt, err := sync.Enqueue(ctx, q, orders{42}, throttle)
		if err != nil {
			log.Panic(err)
		}
		task, err := q.Task(ctx, receipt.ID)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println("task", task.ID, "is skipped:", receipt.Existed, "runs after", task.UpdatedAt.Sub(task.CreatedAt))
	}
	// Output:
	// task 1 is skipped: false runs after 1m0s
	// task 1 is skipped: true runs after 1m0s
	// task 1 is skipped: true runs after 1m0s
}

// No more than one task of the kind is unfinished.
func ExampleByKind() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	backup := falldue.NewKind[string]("backup", falldue.KindConfig{})
	alone := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByKind()}}

	for _, reason := range []string{"nightly", "by hand"} {
		receipt, err := backup.Enqueue(ctx, q, reason, alone)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(reason, receipt.Existed)
	}
	// Output:
	// nightly false
	// by hand true
}
