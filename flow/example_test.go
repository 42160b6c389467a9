package flow_test

import (
	"context"
	"fmt"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

var (
	renderPage = falldue.NewKind[int]("page.render", falldue.KindConfig{})
	publish    = falldue.NewKind[string]("book.publish", falldue.KindConfig{})
)

// A batch with a callback.
func ExampleFlow_Then() {
	enqueue := func(ctx context.Context, q *falldue.Queue, pages int) error {
		var list []falldue.EnqueueParams
		for n := range pages {
			list = append(list, renderPage.Params(n+1, nil))
		}
		_, err := flow.Batch(list...).Then(publish.Params("the book", nil)).Enqueue(ctx, q)
		return err
	}
	_ = enqueue
	fmt.Println("the book is published when all its pages are rendered")
	// Output: the book is published when all its pages are rendered
}

// A handler that reads how the tasks before its own have ended.
func ExampleCountsOf() {
	handle := func(q *falldue.Queue) {
		falldue.Handle(q, publish, func(ctx context.Context, t falldue.Task[string]) error {
			n, err := flow.CountsOf(ctx, q, t.ID)
			if err != nil {
				return err
			}
			fmt.Println(n.Done, "pages are rendered,", n.Dead, "are not")
			return nil
		})
	}
	_ = handle
}
