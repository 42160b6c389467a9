package ops_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

// PolicyByKey reads a policy that tasks were enqueued with.
func ExampleOps_PolicyByKey() {
	ctx := context.Background()
	q, closeQueue := openQueue()
	defer closeQueue()

	own := backoff.Constant(10 * time.Minute).WithMaxAttempts(4)
	receipt, err := falldue.NewKind[string]("greet", falldue.KindConfig{}).Enqueue(ctx, q, "Ada", falldue.EnqueueOptions{Policy: own})
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	policy, err := ops.New(q).PolicyByKey(ctx, task.Policy)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(policy)
	// Output: delay 10m; attempts 4
}

func ExampleOps_SetPolicy() {
	q, closeQueue := openQueue()
	defer closeQueue()
	ctx := context.Background()
	slower, err := backoff.ParseOverride("4 * original")
	if err != nil {
		log.Panic(err)
	}
	o := ops.New(q)
	err = o.SetPolicy(ctx, falldue.Subject{Kind: "charge"}, slower, ops.OverrideOptions{
		Until: time.Now().Add(2 * time.Hour), Note: falldue.Note{Who: "ann", Why: "the provider is slow"},
	})
	if err != nil {
		log.Panic(err)
	}
	list, err := o.Overrides(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, set := range list {
		fmt.Printf("%s has %s, set by %s: %s\n", set.Subject, set.Formula, set.Who, set.Why)
		fmt.Println("charge follows:", set.Names(falldue.TaskInfo{Kind: "charge"}), "mail follows:", set.Names(falldue.TaskInfo{Kind: "mail"}))
	}
	if err := o.ClearPolicy(ctx, falldue.Subject{Kind: "charge"}, falldue.Note{Who: "ann"}); err != nil {
		log.Panic(err)
	}
	history, err := o.OverrideHistory(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(history), "changes, the last one cleared it:", history[1].Cleared)
	// Output:
	// kind:charge has 4 * original, set by ann: the provider is slow
	// charge follows: true mail follows: false
	// 2 changes, the last one cleared it: true
}
