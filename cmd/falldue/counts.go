package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func countsCommand() *cobra.Command {
	var p place
	var queue, kind string
	var estimate, asJSON bool
	cmd := &cobra.Command{
		Use:   "counts",
		Short: "Count tasks by queue, kind and state",
		Long: "Count tasks by queue, kind and state. The numbers are exact: the command reads the\n" +
			"whole table, about a second for each million tasks. With --estimate, numbers after ~\n" +
			"are estimates, which take a tenth of a second for any number of tasks. A running\n" +
			"task is counted in the state open or snoozed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				counts, err := countTasks(cmd, o, estimate)
				if err != nil {
					return err
				}
				counts = slices.DeleteFunc(counts, func(c ops.Count) bool {
					return queue != "" && c.Queue != queue || kind != "" && c.Kind != kind
				})
				if asJSON {
					return printEach(cmd, counts, func(c ops.Count) any {
						return struct {
							Queue     string        `json:"queue"`
							Kind      string        `json:"kind"`
							State     falldue.State `json:"state"`
							Tasks     int64         `json:"tasks"`
							Estimated bool          `json:"estimated,omitempty"`
						}{c.Queue, c.Kind, c.State, c.Tasks, c.Estimated}
					})
				}
				return printCounts(screenOf(cmd), counts)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&queue, "queue", "", "count only tasks of this queue")
	cmd.Flags().StringVar(&kind, "kind", "", "count only tasks of this kind")
	cmd.Flags().BoolVar(&estimate, "estimate", false, "estimate large numbers instead of counting")
	p.completeNames(cmd, "queue", queueName)
	p.completeNames(cmd, "kind", queueKinds)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: queue, kind, state, tasks")
	return cmd
}

// countTasks counts all tasks, and shows at the terminal that it does, or estimates how many
// there are.
func countTasks(cmd *cobra.Command, o *ops.Ops, estimate bool) (counts []ops.Count, err error) {
	if estimate {
		return o.EstimateCounts(cmd.Context())
	}
	what := "counting"
	if n, known, err := o.EstimateTasks(cmd.Context()); err == nil && known {
		what += fmt.Sprintf(" about %s", words.Count(n, "task"))
	}
	err = withProgress(cmd, func() string { return what }, func() (err error) {
		counts, err = o.Counts(cmd.Context())
		return err
	})
	return counts, err
}

// states are the states of tasks, in the order of their columns.
var states = []falldue.State{falldue.StateBlocked, falldue.StateOpen, falldue.StateSnoozed, falldue.StateDead, falldue.StateCancelled, falldue.StateDone}

// printCounts prints a row for each queue and kind.
func printCounts(s screen, counts []ops.Count) error {
	states := states
	if !slices.ContainsFunc(counts, func(c ops.Count) bool { return c.State == falldue.StateBlocked }) { // few have flows
		states = states[1:]
	}
	columns := []column{{name: "queue", least: 8}, {name: "kind", least: 8}}
	for _, state := range states {
		columns = append(columns, column{name: string(state), right: true})
	}
	type group struct{ queue, kind string }
	tasks := map[group]map[falldue.State]int64{}
	total := map[falldue.State]int64{}
	estimated := map[ops.Count]bool{} // with no number
	var groups []group
	for _, c := range counts {
		g := group{c.Queue, c.Kind}
		if tasks[g] == nil {
			tasks[g] = map[falldue.State]int64{}
			groups = append(groups, g)
		}
		tasks[g][c.State] += c.Tasks
		total[c.State] += c.Tasks
		if c.Estimated {
			estimated[ops.Count{Queue: c.Queue, Kind: c.Kind, State: c.State}] = true
			estimated[ops.Count{Queue: "all", State: c.State}] = true
		}
	}
	var rows [][]string
	row := func(queue, kind string, n map[falldue.State]int64) {
		r := []string{queue, kind}
		for _, state := range states {
			number := grouped(n[state])
			if estimated[ops.Count{Queue: queue, Kind: kind, State: state}] {
				number = "~" + number
			}
			r = append(r, number)
		}
		rows = append(rows, r)
	}
	for _, g := range groups {
		row(g.queue, g.kind, tasks[g])
	}
	if len(groups) != 1 {
		row("all", "", total)
	}
	return s.table(columns, rows)
}

// grouped formats a number with its thousands apart.
func grouped(n int64) string { return words.Number(n) }

// printEach prints a JSON object for each of a list.
func printEach[T any](cmd *cobra.Command, list []T, object func(T) any) error {
	lines := jsonLines(cmd.OutOrStdout())
	for _, t := range list {
		if err := lines.Encode(object(t)); err != nil {
			return err
		}
	}
	return nil
}

func queuesCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List queues, and when their first tasks are due",
		Long: "List the queues that have unfinished tasks, their kinds, and when the first task of\n" +
			"each is or was due. A lane is a group of tasks with the same delay. The cost of the\n" +
			"command does not depend on the number of tasks.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				list, err := o.Queues(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printEach(cmd, list, func(q ops.Queue) any {
						return struct {
							Queue    string     `json:"queue"`
							Kinds    []string   `json:"kinds"`
							Lanes    int        `json:"lanes"`
							FirstDue *time.Time `json:"first_due,omitempty"`
						}{q.Name, append([]string{}, q.Kinds...), q.Lanes, set(q.FirstDue)}
					})
				}
				var rows [][]string
				for _, q := range list {
					first := "–"
					if !q.FirstDue.IsZero() {
						first = dueText(q.FirstDue, q.Now)
					}
					rows = append(rows, []string{q.Name, strconv.Itoa(q.Lanes), first, strings.Join(q.Kinds, " ")})
				}
				return screenOf(cmd).table([]column{{name: "queue", least: 8}, {name: "lanes", right: true}, {name: "first task"}, {name: "kinds", least: 10}}, rows)
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: queue, kinds, lanes, first_due")
	return cmd
}

// set returns a time for JSON, or nil if it is zero.
func set(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// dueText says when something is due, or how long it has been.
func dueText(due, now time.Time) string {
	switch wait := due.Sub(now); {
	case wait > 0:
		return "in " + words.Span(wait)
	case wait > -time.Second:
		return "due now"
	default:
		return "due for " + words.Span(-wait)
	}
}
