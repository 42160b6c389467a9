// Command falldue works with falldue's tables and its policies. Its verbs are
// listed by falldue help.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "falldue:", err)
		return 1
	}
	return 0
}

// root is the command with all its verbs.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "falldue",
		Short:         "Create falldue's tables, and look at policies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(migrateCommand(), policyCommand())
	return cmd
}
