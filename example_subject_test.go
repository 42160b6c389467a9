package falldue_test

import (
	"fmt"
	"log"

	"github.com/falldue/falldue"
)

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
