package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// filterFlags are the flags that select tasks.
type filterFlags struct {
	filter       ops.Filter
	list         ops.ListOptions // or the Limit and After of changes
	state, phase string
}

// flags adds the flags. verb is what the command does to the tasks.
func (f *filterFlags) flags(cmd *cobra.Command, p *place, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Queue, "queue", "", verb+" tasks of this queue")
	flags.StringVar(&f.filter.Kind, "kind", "", verb+" tasks of this kind")
	flags.StringVar(&f.filter.Key, "key", "", verb+" tasks with this task key")
	stateNames, phaseNames := choices(verb)
	choiceVar(flags, &f.state, "state", stateNames, verb+" tasks in this state: "+strings.Join(stateNames, ", "))
	choiceVar(flags, &f.phase, "phase", phaseNames, verb+" tasks in this phase: "+strings.Join(phaseNames, ", "))
	spanVar(flags, &f.filter.OlderThan, "older-than", 0, verb+" tasks enqueued at least this long ago, such as 48h or 30d")
	spanVar(flags, &f.filter.NewerThan, "newer-than", 0, verb+" tasks enqueued less than this long ago")
	textVar(flags, &f.filter.Match, "match", "", 64<<10, verb+" tasks whose payload has the fields of this JSON object, or contains this `TEXT`")
	numberVar(flags, &f.list.After, "after", 0, 0, math.MaxInt64, verb+" only tasks whose IDs are greater than `N`")
	p.completeNames(cmd, "queue", queueName)
	p.completeNames(cmd, "kind", queueKinds)
	complete(cmd, "state", stateNames...)
	complete(cmd, "phase", phaseNames...)
}

// get returns the filter.
func (f *filterFlags) get() ops.Filter {
	f.filter.State, f.filter.Phase = falldue.State(f.state), falldue.Phase(f.phase)
	return f.filter
}

// choices returns the states and phases of the tasks to which a command does what verb says.
func choices(verb string) (stateNames, phases []string) {
	finished := []string{string(falldue.StateDone), string(falldue.StateDead), string(falldue.StateCancelled)}
	for _, s := range states {
		stateNames = append(stateNames, string(s))
	}
	ended := func(name string) bool { return slices.Contains(finished, name) }
	switch verb {
	case "retry":
		return finished, finished
	case "cancel":
		return slices.DeleteFunc(stateNames, ended), slices.DeleteFunc(slices.Clone(phaseNames), ended)
	}
	return stateNames, phaseNames
}

// phaseNames are the names of the phases.
var phaseNames = func() (names []string) {
	for _, p := range []falldue.Phase{
		falldue.PhaseBlocked, falldue.PhaseRunning, falldue.PhaseDue, falldue.PhaseScheduled, falldue.PhaseBackingOff, falldue.PhaseSnoozed, falldue.PhasePaused,
		falldue.PhaseLimited, falldue.PhaseUnknownPolicy, falldue.PhaseDone, falldue.PhaseDead, falldue.PhaseCancelled,
	} {
		names = append(names, string(p))
	}
	return names
}()

// bulkCommand is a command that changes tasks by their IDs, or those that match a filter.
type bulkCommand struct {
	place
	policies policyFlag
	filter   filterFlags
	options  ops.BulkOptions
	from     string
	yes      bool
	asJSON   bool

	verb, done string // such as cancel and cancelled
	asks       bool   // whether it asks before it changes tasks by their IDs
	expects    bool   // whether tasks that are named must be in the --state
	one        func(*falldue.Queue, context.Context, int64) error
	many       func(*ops.Ops, context.Context, ops.Filter, ...ops.BulkOptions) (ops.BulkReport, error)
}

const bulkHelp = `List the tasks by their IDs, or select them with flags, which must all match. With flags
the command counts the tasks first, and asks for confirmation unless --yes is set. It changes batches of
500 tasks, in the order of their IDs, and lists tasks that the database refuses to change.
After Ctrl-C it prints the command that continues.`

// add makes the command. It ends with status 3 if a task that is named does not exist or is
// in a state that does not allow the change, and with 4 if a task could not be changed.
func (b *bulkCommand) add(cmd *cobra.Command) *cobra.Command {
	b.flags(cmd)
	b.policies.flag(cmd)
	b.filter.flags(cmd, &b.place, b.verb)
	numberVar(cmd.Flags(), &b.filter.list.Limit, "limit", 0, 0, math.MaxInt32, "maximum number of tasks to "+b.verb+" (default all)")
	cmd.Flags().BoolVar(&b.options.DryRun, "dry-run", false, "count the tasks, and change nothing")
	yesFlag(cmd, &b.yes)
	jsonFlag(cmd, &b.asJSON, "print one JSON object per task listed by ID, or one for all selected tasks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		selected := false
		cmd.Flags().Visit(func(f *pflag.Flag) {
			expected := b.expects && len(args) > 0 && f.Name == "state"
			selected = selected || isFilter(f.Name) && !expected
		})
		switch {
		case len(args) > 0 && (selected || b.options.DryRun):
			return mistake(errors.New("both IDs and flags select tasks: use one of them"))
		case len(args) > 0:
			return b.changeOnes(cmd, args)
		case !selected:
			return mistake(fmt.Errorf("no tasks selected: list IDs, or set flags such as --kind; see \"%s --help\"", cmd.CommandPath()))
		}
		return b.changeMany(cmd)
	}
	return cmd
}

// isFilter reports whether a flag selects tasks.
func isFilter(name string) bool {
	switch name {
	case "queue", "kind", "key", "state", "phase", "older-than", "newer-than", "match":
		return true
	}
	return false
}

func (b *bulkCommand) changeOnes(cmd *cobra.Command, args []string) error {
	return b.change(cmd, args, b.done, b.asJSON, b.one, func(q *falldue.Queue, ids []int64) error {
		if !b.asks || b.yes {
			return nil
		}
		if err := b.anyAllowed(cmd.Context(), q, ids); err != nil {
			return err
		}
		return confirm(cmd, b.verb+" tasks: "+strings.Join(args, ", "), false)
	})
}

// anyAllowed returns the first task's error if none of the tasks exists in a state that allows the change.
func (b *bulkCommand) anyAllowed(ctx context.Context, q *falldue.Queue, ids []int64) (first error) {
	allowed, _ := choices(b.verb)
	for _, id := range ids {
		t, err := q.Task(ctx, id)
		switch {
		case errors.Is(err, falldue.ErrNotFound):
			err = maybeDeleted(err)
		case err != nil:
			return err
		case !slices.Contains(allowed, string(t.State)):
			err = fmt.Errorf("%w: task %d is %s; expected %s", falldue.ErrWrongState, id, t.State, oneOf(allowed))
		case b.verb == "delete" && ops.Running(t) && !b.options.Running:
			err = fmt.Errorf("%w: %d; set --running to delete it", falldue.ErrRunning, id)
		default:
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// oneOf joins the values that are allowed.
func oneOf(values []string) string {
	if last := len(values) - 1; last > 0 {
		return strings.Join(values[:last], ", ") + " or " + values[last]
	}
	return strings.Join(values, "")
}

func (b *bulkCommand) changeMany(cmd *cobra.Command) error {
	f := b.filter.get()
	if b.from != "" {
		from, err := timeOf("--from", b.from)
		if err != nil {
			return err
		}
		if time.Until(from) > longestSpan {
			return mistake(fmt.Errorf("--from %v: must not be before 1970, nor more than 36,500 days in the future", from))
		}
		b.options.Spread.From = from
	}
	b.options.Limit, b.options.After = b.filter.list.Limit, b.filter.list.After
	return b.ops(cmd.Context(), b.policies, func(o *ops.Ops, _ *falldue.Queue) error {
		if b.options.DryRun {
			report, err := b.run(cmd, o, f, b.options, "counting", 0)
			if err != nil {
				return err
			}
			return b.print(cmd, report)
		}
		total := int64(0)
		if !b.yes {
			dry := b.options
			dry.DryRun = true
			report, err := b.run(cmd, o, f, dry, "counting", 0)
			if err != nil {
				return err
			}
			if total = report.Changed; total == 0 {
				return b.print(cmd, report)
			}
			if err := confirm(cmd, fmt.Sprintf("%s %s", b.verb, tasksText(total)), false); err != nil {
				return err
			}
		}
		report, err := b.run(cmd, o, f, b.options, b.done, total)
		if err != nil && cmd.Context().Err() != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s %s; to continue:\n  %s\n", b.done, tasksText(report.Changed), b.again(cmd, report))
		}
		if err != nil {
			return err
		}
		return b.print(cmd, report)
	})
}

// run changes or counts tasks, and shows at the terminal how far it is.
func (b *bulkCommand) run(cmd *cobra.Command, o *ops.Ops, f ops.Filter, options ops.BulkOptions, what string, total int64) (report ops.BulkReport, err error) {
	var changed atomic.Int64
	options.Report = func(r ops.BulkReport) { changed.Store(r.Changed) }
	err = withProgress(cmd, func() string { return bar(what, changed.Load(), total) }, func() (err error) {
		report, err = b.many(o, cmd.Context(), f, options)
		return err
	})
	return report, err
}

// bar returns a bar for n of total things, or how many there are so far if the total is 0.
func bar(what string, n, total int64) string {
	if total == 0 {
		return fmt.Sprintf("%s %s", what, grouped(n))
	}
	const width = 30
	full := int(min(n, total) * width / total)
	return fmt.Sprintf("%s [%s%s] %s of %s", what, strings.Repeat("#", full), strings.Repeat(".", width-full), grouped(n), grouped(total))
}

func tasksText(n int64) string {
	if n == 1 {
		return "1 task"
	}
	return grouped(n) + " tasks"
}

// again returns the command that continues after an interruption, without what says where the
// tables are.
func (b *bulkCommand) again(cmd *cobra.Command, report ops.BulkReport) string {
	parts := []string{cmd.CommandPath()}
	quoted := func(name, value string) {
		parts = append(parts, "--"+name+"='"+strings.ReplaceAll(value, "'", `'\''`)+"'")
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "dsn", "driver", "prefix", "schema", "after", "yes":
		case "from":
			if report.DueFrom.IsZero() {
				quoted(f.Name, b.from)
			}
		case "limit": // of those that are left
			parts = append(parts, fmt.Sprintf("--limit=%d", int64(b.filter.list.Limit)-report.Changed))
		case "policy":
			for _, text := range b.policies.texts {
				quoted(f.Name, text)
			}
		default:
			quoted(f.Name, f.Value.String())
		}
	})
	parts = append(parts, fmt.Sprintf("--after=%d", max(report.After, b.filter.list.After)))
	if !report.DueFrom.IsZero() {
		parts = append(parts, "--from="+report.DueFrom.Format(time.RFC3339Nano))
	}
	return strings.Join(parts, " ")
}

// print prints a report. Its error says that tasks failed.
func (b *bulkCommand) print(cmd *cobra.Command, r ops.BulkReport) (err error) {
	if b.asJSON {
		err = jsonLines(cmd.OutOrStdout()).Encode(reportObject(r, b.options.DryRun))
	} else {
		done := b.done
		if b.options.DryRun {
			done = "would have " + done
		}
		text := fmt.Sprintf("%s %s", done, tasksText(r.Changed))
		if r.Left > 0 {
			text += fmt.Sprintf(", and skipped %s that were running, or changed in the meantime", grouped(r.Left))
		}
		text += "\n"
		if r.Undecodable > 0 {
			text += fmt.Sprintf("skipped %s with payloads that could not be decoded\n", tasksText(r.Undecodable))
		}
		for _, f := range r.Failures {
			text += plain(strings.ReplaceAll(f.Err.Error(), "falldue: ", "")) + "\n"
		}
		if more := r.Failed - int64(len(r.Failures)); more > 0 {
			text += fmt.Sprintf("and %s more that could not be changed\n", grouped(more))
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	}
	if err == nil && r.Failed > 0 {
		return finding(exitAttention)
	}
	return err
}

func reportObject(r ops.BulkReport, dry bool) any {
	type failure struct {
		ID    int64  `json:"id"`
		Error string `json:"error"`
	}
	o := struct {
		DryRun   bool      `json:"dry_run"`
		Changed  int64     `json:"changed"`
		Left     int64     `json:"left"`
		Failed   int64     `json:"failed"`
		Failures []failure `json:"failures"`
		// The command has no codec of its own.
		Undecodable int64      `json:"undecodable,omitempty"`
		After       int64      `json:"after"`
		DueFrom     *time.Time `json:"due_from,omitempty"`
	}{dry, r.Changed, r.Left, r.Failed, []failure{}, r.Undecodable, r.After, set(r.DueFrom)}
	for _, f := range r.Failures {
		o.Failures = append(o.Failures, failure{f.ID, f.Err.Error()})
	}
	return o
}
