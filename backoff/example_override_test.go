package backoff_test

import (
	"fmt"
	"log"
	"time"

	"github.com/falldue/falldue/backoff"
)

func ExampleParseOverride() {
	slower, err := backoff.ParseOverride("max(4 * original, 1m); attempts 50")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(slower.Of(backoff.Zizq()))
	fmt.Println("depends on the policy:", slower.UsesOriginal())
	// Output:
	// delay max(4 * (15s + n^4), 1m); jitter 30s * n; attempts 50
	// depends on the policy: true
}

func ExampleOverrideWith() {
	replace, err := backoff.OverrideWith(backoff.Constant(5 * time.Minute))
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(replace)
	fmt.Println(replace.Of(backoff.Zizq()))
	// Output:
	// delay 5m; jitter 0; attempts 0; elapsed 0s; start 0s
	// delay 5m
}
