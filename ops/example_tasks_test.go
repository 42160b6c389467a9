package ops_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Tasks shows what tasks wait for, and finds them by their payloads.
func ExampleOps_Tasks_match() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	type order struct {
		Number int `json:"number"`
	}
	ship := falldue.NewKind[order]("ship", falldue.KindConfig{})
	if _, err := ship.EnqueueMany(ctx, q, []order{{41}, {42}, {43}}); err != nil {
		log.Panic(err)
	}
	if err := q.Pause(ctx, falldue.Subject{Kind: "ship"}); err != nil {
		log.Panic(err)
	}

	page, err := ops.New(q).Tasks(ctx, ops.Filter{Kind: "ship", Match: `{"number": 42}`})
	if err != nil {
		log.Panic(err)
	}
	for _, task := range page.Tasks {
		fmt.Println(string(task.Payload), "is", task.State, "and", task.Phase)
	}
	fmt.Println("more:", page.More) // then ListOptions.After is page.Next
	// Output:
	// {"number":42} is open and paused
	// more: false
}

// SetPhases shows what tasks wait for that were read by Queue.Task.
func ExampleOps_SetPhases() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Ada")
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	tasks := []falldue.TaskInfo{task}
	if err := ops.New(q).SetPhases(ctx, tasks); err != nil {
		log.Panic(err)
	}
	fmt.Println(tasks[0].Phase)
	// Output: due
}

// Tasks lists tasks page by page.
func ExampleOps_Tasks() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	if _, err := greet.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}); err != nil {
		log.Panic(err)
	}

	filter, list := ops.Filter{Kind: "greet", State: falldue.StateOpen}, ops.ListOptions{Limit: 2}
	for n := 1; ; n++ {
		page, err := ops.New(q).Tasks(ctx, filter, list)
		if err != nil {
			log.Panic(err)
		}
		for _, task := range page.Tasks {
			fmt.Println("page", n, string(task.Payload))
		}
		if !page.More {
			break
		}
		list.After = page.Next
	}
	// Output:
	// page 1 "Ada"
	// page 1 "Bob"
	// page 2 "Eve"
}

// TasksTx lists what a transaction has enqueued, before it commits.
func ExampleOps_TasksTx() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	q := newQueue(db, falldue.Config{})

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	if _, err := greet.EnqueueTx(ctx, q, tx, "Ada"); err != nil {
		log.Panic(err)
	}
	page, err := ops.New(q).TasksTx(ctx, tx, ops.Filter{Kind: "greet"})
	if err != nil {
		log.Panic(err)
	}
	for _, task := range page.Tasks {
		fmt.Println(task.Kind, string(task.Payload))
	}
	// Output: greet "Ada"
}

// ChangeTask changes a task that waits, here its time, its priority and its arguments.
func ExampleOps_ChangeTask() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()
	remind := falldue.NewKind[string]("remind", falldue.KindConfig{}).KeyedBy(func(customer string) string { return "customer:" + customer })
	receipt, err := remind.Enqueue(ctx, q, "42", falldue.EnqueueOptions{RunAt: time.Date(2999, 1, 1, 9, 0, 0, 0, time.UTC)})
	if err != nil {
		log.Panic(err)
	}

	err = ops.New(q).ChangeTask(ctx, receipt.ID, ops.TaskChange{
		RunAt:    time.Date(2999, 1, 2, 9, 0, 0, 0, time.UTC),
		Priority: new(-5),
		Params:   new(remind.Params("43")), // with its key
	})
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(task.UpdatedAt.UTC().Format(time.DateOnly), task.Priority, task.Key, string(task.Payload))
	// Output: 2999-01-02 -5 customer:43 "43"
}
