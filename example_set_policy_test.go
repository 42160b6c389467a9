package falldue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

func ExampleQueue_SetPolicy() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()
	ctx := context.Background()
	slower, err := backoff.ParseOverride("4 * own")
	if err != nil {
		log.Panic(err)
	}
	err = q.SetPolicy(ctx, falldue.Subject{Kind: "charge"}, slower, falldue.OverrideOptions{
		Until: time.Now().Add(2 * time.Hour), Who: "ann", Why: "the provider is slow",
	})
	if err != nil {
		log.Panic(err)
	}
	list, err := q.Overrides(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, o := range list {
		fmt.Printf("%s has %s, set by %s: %s\n", o.Subject, o.Override, o.Who, o.Why)
		fmt.Println("charge follows:", o.Names(falldue.TaskInfo{Kind: "charge"}), "mail follows:", o.Names(falldue.TaskInfo{Kind: "mail"}))
	}
	if err := q.ClearPolicy(ctx, falldue.Subject{Kind: "charge"}, falldue.ResumeOptions{Who: "ann"}); err != nil {
		log.Panic(err)
	}
	history, err := q.OverrideHistory(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(history), "changes, the last one cleared it:", history[1].Cleared)
	// Output:
	// kind:charge has 4 * own, set by ann: the provider is slow
	// charge follows: true mail follows: false
	// 2 changes, the last one cleared it: true
}

// The command line takes subjects as text. A text without a field is the name of a kind.
func ExampleParseSubject() {
	queue, err := falldue.ParseSubject("queue:default")
	if err != nil {
		log.Panic(err)
	}
	kind, err := falldue.ParseSubject("charge")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(kind, "and", queue)
	// Output: kind:charge and queue:default
}
