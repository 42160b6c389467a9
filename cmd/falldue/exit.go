package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
)

// The exit statuses, which docs/command-line.md lists.
const (
	exitFailed      = 1 // the command could not do what it was asked for
	exitUsage       = 2 // the command line has a mistake
	exitNotFound    = 3 // there is no such task, or its state does not allow the change
	exitAttention   = 4 // the answer is one that somebody should look at
	exitBroken      = 5 // the answer is that something does not work
	exitWaits       = 6 // the answer is that the task cannot run now
	exitInterrupted = 130
)

// failure is an error of a command that has begun. All other errors are mistakes of the
// command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// notFound returns an error about what is not there.
func notFound(format string, args ...any) error { return missing{fmt.Errorf(format, args...)} }

type missing struct{ error }

func (missing) Is(err error) bool { return err == falldue.ErrNotFound }

// finding is an answer that has been printed and has an exit status of its own.
type finding int

func (finding) Error() string { return "" }

// exitStatus returns the status with which the program ends.
func exitStatus(err error) int {
	if f, ok := errors.AsType[finding](err); ok {
		return int(f)
	}
	_, begun := errors.AsType[failure](err)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, falldue.ErrNotFound), errors.Is(err, falldue.ErrRunning):
		return exitNotFound
	case !begun, errors.Is(err, falldue.ErrInvalid), errors.Is(err, errUsage):
		return exitUsage
	}
	return exitFailed
}

// errInterrupted ends a command whose terminal gives it Ctrl-C as a key.
var errInterrupted = errors.New("interrupted")

// errUsage is wrapped by the errors of commands that find a mistake in their arguments.
var errUsage = errors.New("usage")

// mistake returns an error about an argument, or nil for nil.
func mistake(err error) error {
	if err == nil {
		return nil
	}
	return mistaken{err}
}

type mistaken struct{ error }

func (m mistaken) Unwrap() []error { return []error{m.error, errUsage} }

// noOtherCommand refuses arguments of a command that only has subcommands, and names those
// that may be meant.
func noOtherCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return errors.New(text)
}

// prepare makes all errors of the commands' own code failures, and makes commands that
// only have subcommands refuse others.
func prepare(cmd *cobra.Command) {
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = noOtherCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if args := cmd.Args; args != nil && !cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, list []string) error {
			if args(cmd, list) == nil {
				return nil
			}
			given := "arguments"
			if len(list) == 1 {
				given = "argument"
			}
			return fmt.Errorf("%d %s; the usage is %s", len(list), given, cmd.UseLine())
		}
	}
	if fn := cmd.RunE; fn != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := fn(cmd, args); err != nil {
				return failure{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}
