package ops_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Counts returns the number of tasks in each queue, kind and state, for a
// dashboard for example.
func ExampleOps_Counts() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipts, err := greet.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Cancel(ctx, receipts[1].ID); err != nil {
		log.Panic(err)
	}

	counts, err := ops.New(q).Counts(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, c := range counts {
		fmt.Println(c.Queue, c.Kind, c.State, c.Tasks)
	}
	// Unordered output:
	// default greet open 2
	// default greet cancelled 1
}

// EstimateCounts estimates numbers of many tasks, so that a dashboard can ask often.
func ExampleOps_EstimateCounts() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	if _, err := greet.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}); err != nil {
		log.Panic(err)
	}
	counts, err := ops.New(q).EstimateCounts(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, c := range counts {
		about := ""
		if c.Estimated {
			about = "about "
		}
		fmt.Printf("%s%d %s tasks are %s\n", about, c.Tasks, c.Kind, c.State)
	}
	// Output: 3 greet tasks are open
}

// Overdue returns the tasks that have been due for more than a minute. Here no worker
// works on the queue in which they wait.
func ExampleOps_Overdue() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	resize := falldue.NewKind[string]("image.resize", falldue.KindConfig{Queue: "images"})
	_, err := resize.EnqueueMany(ctx, q, []string{"a.png", "b.png"}, falldue.EnqueueOptions{
		RunAt: time.Now().Add(-time.Hour), // as if they had been enqueued an hour ago
	})
	if err != nil {
		log.Panic(err)
	}

	overdue, err := ops.New(q).Overdue(ctx, 0)
	if err != nil {
		log.Panic(err)
	}
	for _, o := range overdue {
		fmt.Println(o.Queue, o.Kind, o.Tasks, time.Since(o.DueSince).Round(time.Hour))
	}
	// Output:
	// images image.resize 2 1h0m0s
}
