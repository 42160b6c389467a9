// Command falldue inspects and changes the tasks of falldue, previews policies, and
// manages its tables. The command falldue help lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/internal/dsn"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int { return runCommand(root(), args) }

func runCommand(cmd *cobra.Command, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the process immediately
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, errInterrupted)) {
		fmt.Fprintln(os.Stderr, "falldue: interrupted")
		return exitInterrupted
	}
	if err != nil && err.Error() != "" {
		text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "falldue: "), ": falldue: ", ": ") // the prefix comes once
		fmt.Fprintln(os.Stderr, "falldue:", dsn.HideIn(text))
	}
	return exitStatus(err)
}
