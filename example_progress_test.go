package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
)

// Progress is read while the task runs, and from a task that is kept when it has ended.
func ExampleTask_Progress() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	resize := falldue.NewKind[[]string]("images.resize", falldue.KindConfig{DoneRetention: 24 * time.Hour})
	receipt, err := resize.Enqueue(ctx, q, []string{"cat.png", "dog.png"})
	if err != nil {
		log.Panic(err)
	}

	falldue.Handle(q, resize, func(_ context.Context, t falldue.Task[[]string]) error {
		for i, name := range t.Args {
			// … resize the image …
			t.Progress(float64(i+1)/float64(len(t.Args)), "resized "+name)
		}
		stop() // so that this example ends
		return nil
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	p, err := q.Progress(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%.0f %%: %s\n", 100*p.Fraction, p.Message)
	// Output: 100 %: resized dog.png
}

// ResultOf reads what SetResult has stored. Done tasks must be kept for that.
func ExampleResultOf() {
	ctx := context.Background()
	running, stop := context.WithCancel(ctx)
	defer stop()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type Size struct{ Width, Height int }
	measure := falldue.NewKind[string]("image.measure", falldue.KindConfig{DoneRetention: time.Hour})
	receipt, err := measure.Enqueue(ctx, q, "cat.png")
	if err != nil {
		log.Panic(err)
	}
	_, err = falldue.ResultOf[Size](ctx, q, receipt.ID)
	fmt.Println("a result before it ran:", !errors.Is(err, falldue.ErrNoResult))

	falldue.Handle(q, measure, func(_ context.Context, t falldue.Task[string]) error {
		stop() // so that this example ends
		return t.SetResult(Size{Width: 640, Height: 480})
	})
	if err := q.Run(running); err != nil {
		log.Panic(err)
	}

	size, err := falldue.ResultOf[Size](ctx, q, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(size.Width, "x", size.Height)
	// Output:
	// a result before it ran: false
	// 640 x 480
}
