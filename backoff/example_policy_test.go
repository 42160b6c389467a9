package backoff_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

// The wait after a failure is drawn between the delay and the delay plus the
// jitter, so that tasks that failed together do not come back together.
func ExamplePolicy_Wait() {
	var policy backoff.Policy // the zero value is the default policy
	for _, failures := range []int64{1, 2, 5, 10, 25} {
		delay, jitter := policy.Wait(failures)
		fmt.Printf("after %d: %v to %v\n", failures, delay, delay+jitter)
	}
	fmt.Println("attempts:", policy.MaxAttempts())
	// Output:
	// after 1: 16s to 46s
	// after 2: 31s to 1m31s
	// after 5: 10m40s to 13m10s
	// after 10: 2h46m55s to 2h51m55s
	// after 25: 108h30m40s to 108h43m10s
	// attempts: 26
}

// The formula of a jitter may use n, the number of failures, and the delay.
func ExamplePolicy_WithJitter() {
	policy := backoff.Constant(time.Minute)
	fmt.Println(policy.WithJitter("0.2 * delay"))
	fmt.Println(policy.WithJitter("10s * n"))
	fmt.Println(policy) // has not changed
	// Output:
	// delay 1m; jitter 0.2 * delay
	// delay 1m; jitter 10s * n
	// delay 1m
}

// A task is given up at whichever limit it reaches first.
func ExamplePolicy_WithMaxElapsed() {
	policy := backoff.Constant(time.Minute).WithMaxAttempts(100).WithMaxElapsed(time.Hour)
	fmt.Println(policy.MaxAttempts(), policy.MaxElapsed())
	// Output:
	// 100 1h0m0s
}

// A reminder is worthless an hour after its time. Then no handler runs it, and its task is cancelled.
func ExamplePolicy_WithStartWithin() {
	policy := backoff.Constant(time.Minute).WithMaxAttempts(5).WithStartWithin(time.Hour)
	fmt.Println(policy)
	// Output:
	// delay 1m; attempts 5; start 1h
}

// ParseDeferred is for package variables, where no code can check an error.
// Enqueue and Run return it when they first use the policy.
func ExampleParseDeferred() {
	good := backoff.ParseDeferred("min(1h, 15s * 2^n); attempts 10")
	fmt.Println(good.Err())

	bad := backoff.ParseDeferred("min(1h, 15s * 2^n; attempts 10") // without the second parenthesis
	fmt.Println(bad.Err())
	// Output:
	// <nil>
	// backoff: formula "min(1h, 15s * 2^n; attempts 10", byte 17: found the end, expected "," or ")"
}

// New asks the database which engine it is. It refuses invalid settings; the
// error says what is allowed.
func ExampleNew() {
	delay, err := sqlgen.Parse("min(10m, 1s * n^2)")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := backoff.New(delay, nil).WithMaxAttempts(50) // nil: without jitter
	wait, _ := policy.Wait(7)
	fmt.Println(wait)
	fmt.Println(policy)
	// Output:
	// 49s
	// delay min(10m, 1s * n^2); attempts 50
}

// Presets lists the policies that have a name, with their parameters. The text
// of a policy can use each of them.
func ExamplePresets() {
	for _, preset := range backoff.Presets() {
		if preset.Name == "linear" {
			for _, parameter := range preset.Params {
				fmt.Println(parameter.Name, parameter.Range())
			}
		}
	}
	policy, err := backoff.Parse("linear(min=10s, max=1m, retries=3)")
	fmt.Println(policy, err)
	// Output:
	// min from 0s to 36500d
	// max from 0s to 36500d
	// retries from 1 to 1000000
	// delay 10s + (1m - 10s) * (min(n, 3) - 1) / 2; attempts 4 <nil>
}

// The waits of Arctan grow towards a limit and never exceed it.
func ExampleArctan() {
	policy := backoff.Arctan(24 * time.Hour)
	for _, failures := range []int64{1, 2, 3, 10, 100} {
		wait, _ := policy.Wait(failures)
		fmt.Println(wait.Round(time.Minute))
	}
	// Output:
	// 1h1m0s
	// 7h29m0s
	// 16h15m0s
	// 23h46m0s
	// 24h0m0s
}

// The phases of Amazon SNS: retries without a delay, then after the shortest
// delay, then along a curve, and then after the longest delay.
func ExampleSNS() {
	policy := backoff.SNS(backoff.SNSPhases{
		Min: 10 * time.Second, Max: time.Minute,
		Retries: 8, NoDelay: 2, MinDelay: 2, MaxDelay: 1,
	})
	for n := range int64(policy.MaxAttempts() - 1) {
		wait, _ := policy.Wait(n + 1)
		fmt.Println(wait)
	}
	// Output:
	// 0s
	// 0s
	// 10s
	// 10s
	// 10s
	// 35s
	// 1m0s
	// 1m0s
}

// A policy is an object in JSON. It can also be read from a string with its
// text.
func ExamplePolicy_MarshalJSON() {
	policy := backoff.Constant(time.Minute).WithJitter("5s").WithMaxAttempts(3)
	text, err := json.Marshal(policy)
	fmt.Println(string(text), err)

	var read backoff.Policy
	err = json.Unmarshal([]byte(`"1m; jitter 5s; attempts 3"`), &read)
	fmt.Println(read.Key() == policy.Key(), err)
	// Output:
	// {"delay":"1m","jitter":"5s","max_attempts":3} <nil>
	// true <nil>
}
