package falldue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func ExampleQueue_Pause() {
	q, closeQueue := openQueue(falldue.Config{})
	defer closeQueue()
	ctx := context.Background()
	provider := falldue.Subject{Kind: "charge"}
	err := q.Pause(ctx, provider, falldue.PauseOptions{
		Until: time.Now().Add(time.Hour), Note: falldue.Note{Who: "ann", Why: "the payment provider is down"},
	})
	if err != nil {
		log.Panic(err)
	}
	list, err := ops.New(q).Pauses(ctx)
	if err != nil {
		log.Panic(err)
	}
	for _, p := range list {
		fmt.Printf("%s is paused by %s: %s\n", p.Subject, p.Who, p.Why)
	}
	err = q.Resume(ctx, provider, falldue.Note{Who: "ann"})
	if err != nil {
		log.Panic(err)
	}
	// Output: kind:charge is paused by ann: the payment provider is down
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
