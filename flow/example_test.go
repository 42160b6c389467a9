package flow_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

var (
	renderPage = falldue.NewKind[int]("page.render", falldue.KindConfig{})
	publish    = falldue.NewKind[string]("book.publish", falldue.KindConfig{})
)

// A batch with a callback, which reads how the batch has ended.
func Example() {
	folder, err := os.MkdirTemp("", "books-")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db := sqlx.MustConnect("sqlite", "file:"+filepath.Join(folder, "books.db")+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	defer db.Close()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := q.Migrate(ctx); err != nil {
		log.Panic(err)
	}

	pages := []falldue.EnqueueParams{renderPage.Params(1, nil), renderPage.Params(2, nil), renderPage.Params(3, nil)}
	if _, err := flow.Batch(pages...).Then(publish.Params("the book", nil)).Enqueue(ctx, q); err != nil {
		log.Panic(err)
	}

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
	// Output: the book has 3 pages
}

// A graph: a task runs after two others, whatever becomes of them.
func ExampleFlow_Add() {
	fetch, apply := falldue.NewKind[string]("feed.fetch", falldue.KindConfig{}), falldue.NewKind[string]("feed.apply", falldue.KindConfig{})
	enqueue := func(ctx context.Context, q *falldue.Queue, tx falldue.Tx) error {
		var g flow.Flow
		prices, stock := g.Add(fetch.Params("prices", nil)), g.Add(fetch.Params("stock", nil))
		g.Add(apply.Params("all", nil), flow.After(prices, stock), flow.RunAnyway())
		_, err := g.EnqueueTx(ctx, q, tx)
		return err
	}
	_ = enqueue
}
