package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// yesFlag adds the flag --yes of a command that asks before it acts.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask for confirmation")
}

// confirm returns nil if the user agrees: with --yes, or with an answer at the terminal. what
// says what the command is about to do.
func confirm(cmd *cobra.Command, what string, yes bool) error {
	if yes {
		return nil
	}
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return mistake(fmt.Errorf("%s; confirm with --yes", what))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s. Continue? [y/N] ", what)
	answer, err := read(cmd.Context(), func() (string, error) { return bufio.NewReader(file).ReadString('\n') })
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	if cmd.Context().Err() != nil {
		return err
	}
	return fmt.Errorf("nothing was done")
}

// read returns what fn reads, or the error of ctx when that ends: a read of a terminal or of
// a pipe does not end by itself, and its goroutine is left behind.
func read[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := fn()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
