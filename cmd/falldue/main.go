// Command falldue manages the tables of falldue and displays policies. The command
// falldue help lists its subcommands.
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

// root returns the command with all its subcommands.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "falldue",
		Short:         "Create the tables of falldue, and display policies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(migrateCommand(), policyCommand())
	return cmd
}
