package flow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

var (
	renderPage = falldue.NewKind[int]("page.render", falldue.KindConfig{})
	publish    = falldue.NewKind[string]("book.publish", falldue.KindConfig{})
	alert      = falldue.NewKind[string]("alert", falldue.KindConfig{})
)

// openQueue makes a queue on a new SQLite database.
func openQueue() (q *falldue.Queue, db *sqlx.DB, closeQueue func()) {
	folder, err := os.MkdirTemp("", "books-")
	if err != nil {
		log.Panic(err)
	}
	db = sqlx.MustConnect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "books.db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
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

// A batch with a callback, which reads how the batch has ended.
func Example() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	pages := []falldue.EnqueueParams{renderPage.Params(1), renderPage.Params(2), renderPage.Params(3)}
	// The book is published when all its pages are rendered.
	ids, err := flow.Batch(pages...).Then(publish.Params("the book")).Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(ids), "tasks")

	falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error { return nil })
	falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
		n, err := flow.CountsOf(ctx, q, t.ID)
		if err != nil {
			return err
		}
		fmt.Printf("%s has %d pages\n", t.Args, n.Done)
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// 4 tasks
	// the book has 3 pages
}

// Each task of a chain runs after the one before it.
func ExampleChain() {
	q, db, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	step := falldue.NewKind[string]("order.step", falldue.KindConfig{})
	pack, ship, bill := step.Params("pack"), step.Params("ship"), step.Params("bill")

	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	// The order is packed, then shipped, then billed.
	ids, err := flow.Chain(pack, ship, bill).EnqueueTx(ctx, q, tx)
	if err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, step, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println(t.Args)
		if t.ID == ids[2] {
			stop() // so that this example ends
		}
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// pack
	// ship
	// bill
}

// A graph: a task runs after two others.
func ExampleFlow_Add() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	fetch, load := falldue.NewKind[string]("feed.fetch", falldue.KindConfig{}), falldue.NewKind[string]("feed.apply", falldue.KindConfig{})
	fetchPrices, fetchStock, apply := fetch.Params("prices"), fetch.Params("stock"), load.Params("all")

	// Any graph: a task can wait for any tasks that were added before it.
	var g flow.Flow
	prices, stock := g.Add(fetchPrices), g.Add(fetchStock)
	last := g.Add(apply, flow.After(prices, stock))
	ids, err := g.Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, ids[last.Index()])
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("apply is", task.State)

	falldue.Handle(q, fetch, func(context.Context, falldue.Task[string]) error { return nil })
	falldue.Handle(q, load, func(ctx context.Context, t falldue.Task[string]) error {
		n, err := flow.CountsOf(ctx, q, t.ID)
		fmt.Println("apply runs after", n.Done, "tasks")
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// apply is blocked
	// apply runs after 2 tasks
}

// A chain that is cancelled where it breaks, with a report that runs all the same.
func ExampleCancelOnDeath() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	var g flow.Flow
	page := g.Add(renderPage.Params(1))
	book := g.Add(publish.Params("the book"), flow.After(page), flow.CancelOnDeath())
	g.Add(alert.Params("it is over"), flow.After(book), flow.RunAnyway())
	ids, err := g.Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error {
		return falldue.Discard(errors.New("no such page"))
	})
	falldue.Handle(q, alert, func(ctx context.Context, t falldue.Task[string]) error {
		task, err := q.Task(ctx, ids[book.Index()])
		fmt.Printf("%s: the book is %s\n", t.Args, task.State)
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output: it is over: the book is cancelled
}

// An alarm at the first death, while other tasks have not ended.
func ExampleAtFirstDeath() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	var g flow.Flow
	first := g.Add(renderPage.Params(1))
	second := g.Add(renderPage.Params(2, falldue.EnqueueOptions{Delay: time.Hour}))
	g.Add(alert.Params("a page is lost"), flow.After(first, second), flow.AtFirstDeath())
	if _, err := g.Enqueue(ctx, q); err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error {
		return falldue.Discard(errors.New("no such page"))
	})
	falldue.Handle(q, alert, func(ctx context.Context, t falldue.Task[string]) error {
		n, err := flow.CountsOf(ctx, q, t.ID)
		fmt.Printf("%s: %d dead, %d pending\n", t.Args, n.Dead, n.Pending)
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output: a page is lost: 1 dead, 1 pending
}

// A batch with an alarm at the first death, and a report when all of it has ended.
func ExampleFlow_OnFirstDeath() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	pages := []falldue.EnqueueParams{renderPage.Params(1), renderPage.Params(2)}
	alarm, report := alert.Params("a page is lost"), publish.Params("the book")
	_, err := flow.Batch(pages...).OnFirstDeath(alarm).Then(report, flow.RunAnyway()).Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, renderPage, func(_ context.Context, t falldue.Task[int]) error {
		if t.Args == 2 {
			return falldue.Discard(errors.New("no such page"))
		}
		return nil
	})
	alarmed := make(chan struct{})
	falldue.Handle(q, alert, func(_ context.Context, t falldue.Task[string]) error {
		fmt.Println(t.Args)
		close(alarmed)
		return nil
	})
	falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
		<-alarmed
		n, err := flow.CountsOf(ctx, q, t.ID)
		fmt.Printf("%s: %d done, %d dead\n", t.Args, n.Done, n.Dead)
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// a page is lost
	// the book: 1 done, 1 dead
}

// A handler that finds out what there is to do adds it to its own batch.
func ExampleAddSibling() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listPages := falldue.NewKind[string]("pages.list", falldue.KindConfig{})

	_, err := flow.Batch(listPages.Params("the book")).Then(publish.Params("the book")).Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, listPages, func(ctx context.Context, t falldue.Task[string]) error {
		_, err := flow.AddSibling(ctx, q, t.ID, renderPage.Params(1), renderPage.Params(2))
		return err
	})
	falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error { return nil })
	falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
		n, err := flow.CountsOf(ctx, q, t.ID)
		fmt.Println("published after", n.Done, "tasks")
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output: published after 3 tasks
}

// A handler adds tasks in the transaction with its own writes and with the end of its task.
func ExampleAddSiblingTx() {
	q, db, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db.MustExec("create table pages (number integer primary key)")
	listPages := falldue.NewKind[string]("pages.list", falldue.KindConfig{})

	_, err := flow.Batch(listPages.Params("the book")).Then(publish.Params("the book")).Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, listPages, func(ctx context.Context, t falldue.Task[string]) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing once it is committed
		if _, err := tx.ExecContext(ctx, "insert into pages (number) values (1)"); err != nil {
			return err
		}
		if _, err := flow.AddSiblingTx(ctx, q, tx, t.ID, renderPage.Params(1)); err != nil {
			return err
		}
		if err := t.DoneTx(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	falldue.Handle(q, renderPage, func(context.Context, falldue.Task[int]) error { return nil })
	falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
		n, err := flow.CountsOf(ctx, q, t.ID)
		fmt.Println("published after", n.Done, "tasks")
		stop() // so that this example ends
		return err
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output: published after 2 tasks
}

// A callback looks at the tasks of its batch that are dead.
func ExampleMembers() {
	q, _, closeQueue := openQueue()
	defer closeQueue()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	ids, err := flow.Batch(renderPage.Params(1), renderPage.Params(2)).
		Then(publish.Params("the book"), flow.RunAnyway()).Enqueue(ctx, q)
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, renderPage, func(_ context.Context, t falldue.Task[int]) error {
		if t.Args == 2 {
			return falldue.Discard(errors.New("no such page"))
		}
		return nil
	})
	falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
		defer stop()                          // so that this example ends
		n, err := flow.CountsOf(ctx, q, t.ID) // n.Done, n.Dead, n.Cancelled, n.Deleted, n.Pending
		if err != nil {
			return err
		}
		dead, err := flow.Members(ctx, q, t.ID, falldue.StateDead, 0, 100)
		if err != nil {
			return err
		}
		fmt.Println(n.Dead, "dead:", dead[0] == ids[1])
		return nil
	})
	if err := q.Run(ctx); err != nil {
		log.Panic(err)
	}
	// Output: 1 dead: true
}
