package policyflags_test

import (
	"flag"
	"fmt"
	"log"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff/policyflags"
)

func ExampleAdd() {
	flags := flag.NewFlagSet("worker", flag.ExitOnError) // or flag.CommandLine
	defaultPolicy := policyflags.Add(flags)
	args := []string{"--default-retry-limit", "10"} // os.Args[1:]
	if err := flags.Parse(args); err != nil {
		log.Panic(err)
	}
	policy, err := defaultPolicy()
	if err != nil {
		log.Panic(err)
	}
	cfg := falldue.Config{DefaultPolicy: policy}
	fmt.Println(cfg.DefaultPolicy)
	// Output: delay 15s + n^4; jitter 30s * n; attempts 11
}
