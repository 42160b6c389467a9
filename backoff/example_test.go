package backoff_test

import (
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
)

func ExampleGeometric() {
	policy := backoff.Geometric(5*time.Second, 260*time.Second, 10).WithJitter("0.2 * delay")
	for n := range int64(4) {
		delay, jitter := policy.Wait(n + 1)
		fmt.Println(delay, jitter)
	}
	fmt.Println(policy)
	// Output:
	// 5s 1s
	// 7.755986s 1.551197s
	// 12.031065s 2.406213s
	// 18.662556s 3.732511s
	// delay 5s * (260s / 5s)^((min(n, 10) - 1) / 9); jitter 0.2 * delay; attempts 11
}

func ExampleParse() {
	policy, err := backoff.Parse("arctan(max=12h); attempts 40; elapsed 30d")
	fmt.Println(policy, err)
	_, err = backoff.Parse("15s + n ^ ^ 4")
	fmt.Println(err)
	// Output:
	// delay 12h * 2 / pi * atan(n^3 / 15); attempts 40; elapsed 30d <nil>
	// backoff: formula "15s + n ^ ^ 4", byte 10: found "^", expected a number, n, a function or "("
}
