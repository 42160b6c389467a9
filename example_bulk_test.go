package falldue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/falldue/falldue"
)

// RetryMany lets tasks that died in an outage run again, at a rate that the other side can
// bear. DryRun counts them first.
func ExampleQueue_RetryMany() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	charge := falldue.NewKind[string]("charge", falldue.KindConfig{})
	if _, err := charge.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}); err != nil {
		log.Panic(err)
	}
	if _, err := q.CancelMany(ctx, falldue.TaskFilter{Kind: "charge"}, falldue.BulkOptions{}); err != nil {
		log.Panic(err)
	}

	filter := falldue.TaskFilter{Kind: "charge", State: falldue.Cancelled} // without a State: dead
	report, err := q.RetryMany(ctx, filter, falldue.BulkOptions{DryRun: true})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(report.Changed, "would run again")

	report, err = q.RetryMany(ctx, filter, falldue.BulkOptions{
		Spread: falldue.Spread{Rate: 100}, // a second
		Report: func(r falldue.BulkReport) { fmt.Println(r.Changed, "so far") },
	})
	if err != nil {
		// To go on: filter.After = report.After, and Spread.From = report.DueFrom.
		log.Panic(err)
	}
	fmt.Println(report.Changed, "run again, and", report.Failed, "could not be changed")
	// Output:
	// 3 would run again
	// 3 so far
	// 3 run again, and 0 could not be changed
}

// DeleteMany deletes tasks for good.
func ExampleQueue_DeleteMany() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	if _, err := greet.EnqueueMany(ctx, q, []string{"Ada", "Bob", "Eve"}, falldue.EnqueueOptions{Key: "customer:42"}); err != nil {
		log.Panic(err)
	}
	report, err := q.DeleteMany(ctx, falldue.TaskFilter{Key: "customer:42"}, falldue.BulkOptions{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(report.Changed, "deleted,", report.Left, "left because they run")
	// Output: 3 deleted, 0 left because they run
}

// Delete refuses a task that runs, unless its options allow that.
func ExampleQueue_Delete() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Ada")
	if err != nil {
		log.Panic(err)
	}
	err = q.Delete(ctx, receipt.ID, falldue.DeleteOptions{})
	if errors.Is(err, falldue.ErrRunning) {
		err = q.Delete(ctx, receipt.ID, falldue.DeleteOptions{Running: true}) // its handler's context ends
	}
	if err != nil {
		log.Panic(err)
	}
	_, err = q.Task(ctx, receipt.ID)
	fmt.Println(errors.Is(err, falldue.ErrNotFound))
	// Output: true
}

// RetryEdited corrects the arguments of a task that could not succeed.
func ExampleQueue_RetryEdited() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	greet := falldue.NewKind[string]("greet", falldue.KindConfig{})
	receipt, err := greet.Enqueue(ctx, q, "Aad")
	if err != nil {
		log.Panic(err)
	}
	if err := q.Cancel(ctx, receipt.ID); err != nil {
		log.Panic(err)
	}
	if err := q.RetryEdited(ctx, receipt.ID, "Ada"); err != nil { // or json.RawMessage(`"Ada"`)
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	var name string
	if err := json.Unmarshal(task.Payload, &name); err != nil {
		log.Panic(err)
	}
	fmt.Println(name, task.State)
	// Output: Ada open
}

// Find says what tasks wait for, and finds them by their payloads.
func ExampleQueue_Find() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()

	type order struct {
		Number int `json:"number"`
	}
	ship := falldue.NewKind[order]("ship", falldue.KindConfig{})
	if _, err := ship.EnqueueMany(ctx, q, []order{{41}, {42}, {43}}); err != nil {
		log.Panic(err)
	}
	if err := q.Pause(ctx, falldue.Subject{Kind: "ship"}, falldue.PauseOptions{}); err != nil {
		log.Panic(err)
	}

	page, err := q.Find(ctx, falldue.TaskFilter{Kind: "ship", Match: `{"number": 42}`})
	if err != nil {
		log.Panic(err)
	}
	for _, task := range page.Tasks {
		fmt.Println(string(task.Payload), "is", task.State, "and", task.Phase)
	}
	fmt.Println("more:", page.More) // then TaskFilter.After is page.Next
	// Output:
	// {"number":42} is open and paused
	// more: false
}

// Phases says what tasks wait for that were read by Task or Tasks.
func ExampleQueue_Phases() {
	ctx := context.Background()
	q, closeQueue := openQueue(falldue.Config{})
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
	phases, err := q.Phases(ctx, []falldue.TaskInfo{task})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(phases[0])
	// Output: due
}
