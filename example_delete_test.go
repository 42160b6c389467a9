package falldue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/falldue/falldue"
)

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
	err = q.Delete(ctx, receipt.ID)
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

// Retry with Args corrects the arguments of a task that could not succeed.
func ExampleQueue_Retry_arguments() {
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
	if err := q.Retry(ctx, receipt.ID, falldue.RetryOptions{Args: "Ada"}); err != nil { // or json.RawMessage(`"Ada"`)
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
