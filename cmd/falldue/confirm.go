package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// yesFlag adds the flag --yes of a command that asks before it acts.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do it without asking")
}

// confirm returns nil if the user agrees: by --yes, or by an answer at the terminal. what
// says what the command is about to do.
func confirm(cmd *cobra.Command, what string, yes bool) error {
	if yes {
		return nil
	}
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return mistake(fmt.Errorf("%s; confirm with --yes", what))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s. Go on? [y/N] ", what)
	answer, err := bufio.NewReader(file).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	return fmt.Errorf("nothing was done")
}
