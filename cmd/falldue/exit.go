package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// The exit statuses, which docs/command-line.md lists.
const (
	exitFailed      = 1 // the command could not do what it was asked for, or the answer to its question was no
	exitUsage       = 2 // the command line has a mistake
	exitNotFound    = 3 // there is no such task, policy, pause, override or schedule, or the task's state does not allow the change
	exitAttention   = 4 // the answer needs a person's attention
	exitBroken      = 5 // the answer is that something does not work
	exitWaits       = 6 // the answer is that the task cannot run now
	exitInterrupted = 130
)

// statuses are the exit statuses of commands, beyond those that all have, with their texts in help.
var statuses = map[string][]string{
	"falldue ls":                {"3 if a listed task does not exist"},
	"falldue show":              {"3 if the task does not exist"},
	"falldue why":               {"3 if the task does not exist", statusTexts[exitWaits]},
	"falldue change":            {"3 if the task does not exist or its state does not allow the change"},
	"falldue retry":             {bulkNotFound, bulkRefused},
	"falldue cancel":            {bulkNotFound, bulkRefused},
	"falldue delete":            {bulkNotFound, bulkRefused},
	"falldue overdue":           {statusTexts[exitAttention]},
	"falldue workers":           {statusTexts[exitAttention]},
	"falldue explain":           {statusTexts[exitAttention]},
	"falldue doctor":            {statusTexts[exitAttention], statusTexts[exitBroken]},
	"falldue pause":             {statusTexts[exitAttention]},
	"falldue resume":            {"3 if there is no such pause"},
	"falldue policy clear":      {"3 if there is no such override"},
	"falldue policy show":       {"3 if no policy has the key", statusTexts[exitAttention]},
	"falldue policy diff":       {statusTexts[exitAttention]},
	"falldue schedules":         {statusTexts[exitAttention]},
	"falldue schedules pause":   {noSchedule},
	"falldue schedules resume":  {noSchedule},
	"falldue schedules trigger": {noSchedule},
	"falldue schedules remove":  {noSchedule},
}

const (
	bulkNotFound = "3 if a listed task does not exist or its state does not allow the change"
	bulkRefused  = "4 if the database refused to change a task"
	noSchedule   = "3 if a schedule does not exist"
)

// statusTexts say of all commands what an exit status means.
var statusTexts = map[int]string{
	exitNotFound:  "3 if the target does not exist or its state does not allow the change",
	exitAttention: "4 if the answer needs attention",
	exitBroken:    "5 if something does not work",
	exitWaits:     "6 if the task cannot run now",
}

// statusHelp returns the sentence of help that names the exit statuses of a command.
func statusHelp(cmd *cobra.Command) string {
	failed := "1 if the command failed"
	if cmd.Flags().Lookup("yes") != nil {
		failed += " or you answered no"
	}
	parts := []string{"0 for success", failed, "2 for a mistake in the command line"}
	parts = append(parts, statuses[cmd.CommandPath()]...)
	return "Exit statuses: " + strings.Join(append(parts, "130 if interrupted"), ", ") + "."
}

// helpWidth is the greatest number of columns of help.
const helpWidth = 80

// failure is an error of a command that has begun. All other errors are mistakes of the
// command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// notFound returns an error about what is not there.
func notFound(format string, args ...any) error { return store.Missing(fmt.Sprintf(format, args...)) }

// maybeDeleted adds to an error about a missing task why it may be missing.
func maybeDeleted(err error) error {
	if errors.Is(err, falldue.ErrNotFound) {
		return fmt.Errorf("%w; done tasks are deleted immediately, unless the program sets DoneRetention", err)
	}
	return err
}

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
	case refusedChange(err):
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
	unknown := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("%s; did you mean %s?", unknown, strings.Join(similar, " or "))
	}
	return fmt.Errorf("%s; \"%s --help\" lists the commands", unknown, cmd.CommandPath())
}

// reworded is an error of the library in the words of the command.
type reworded struct {
	text string
	error
}

func (r reworded) Error() string { return r.text }
func (r reworded) Unwrap() error { return r.error }

var packageNames = regexp.MustCompile(`(^|: )(?:(?:falldue|backoff|ops|sqlgen|dialect): )+(?:invalid: )?`)

// reword returns an error of the library without the names of packages and settings. Names of fields do not occur: the flags
// check the values that fields get.
func reword(err error) error {
	if !errors.Is(err, falldue.ErrInvalid) && !errors.Is(err, errUsage) {
		return err
	}
	return reworded{strings.ReplaceAll(packageNames.ReplaceAllString(err.Error(), "$1"), " (Config.MaxPayload)", ""), err}
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
				if engine := cmd.Flags().Lookup("engine"); engine != nil && !engine.Changed {
					return errors.New("--engine is missing: must be " + engine.Usage)
				}
				return nil
			}
			given := "arguments"
			if len(list) == 1 {
				given = "argument"
			}
			return fmt.Errorf("%d %s given; usage: %s", len(list), given, cmd.UseLine())
		}
	}
	if fn := cmd.RunE; fn != nil {
		if cmd.HasParent() {
			cmd.Long = strings.TrimRight(cmp.Or(cmd.Long, cmd.Short+"."), "\n") + "\n\n" + statusHelp(cmd)
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := fn(cmd, args); err != nil {
				return failure{reword(err)}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}
