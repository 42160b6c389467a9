// Command falldue inspects and changes the tasks of falldue, previews policies, and
// manages its tables. The command falldue help is a tour.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := root()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "falldue: interrupted")
		return exitInterrupted
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "falldue:", strings.TrimPrefix(err.Error(), "falldue: "))
	}
	return exitStatus(err)
}
