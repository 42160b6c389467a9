package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func whyCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Explain why a task runs, waits or does not run",
		Long: "Explain why a task runs, waits or does not run: each condition that a worker\n" +
			"checks before it starts the task, whether the condition is met, and when all\n" +
			"conditions will be met. Limits are taken from live workers. The command locks the row of the task for a moment, if\n" +
			"the user has the permission, to find out whether another transaction holds its lock.\n" +
			"Status 0 means that the task runs, or that a worker can start it now.\n\n" + policyFlagHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				w, err := o.Why(cmd.Context(), ids[0])
				if err != nil {
					return maybeDeleted(err)
				}
				if asJSON {
					err = jsonLines(cmd.OutOrStdout()).Encode(whyObject(w))
				} else {
					err = printWhy(screenOf(cmd), w)
				}
				if err == nil && !w.Runnable() && !ops.Running(w.Task) {
					err = finding(exitWaits)
				}
				return err
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object, with the conditions")
	return cmd
}

func whyObject(w ops.Why) any {
	type condition struct {
		Condition string     `json:"condition"`
		Holds     bool       `json:"holds"`
		Ends      *time.Time `json:"ends,omitempty"`
		Text      string     `json:"text"`
	}
	o := struct {
		ID         int64       `json:"id"`
		Kind       string      `json:"kind"`
		Queue      string      `json:"queue"`
		Runnable   bool        `json:"runnable"`
		Running    bool        `json:"running"`
		Next       *time.Time  `json:"next,omitempty"`
		Conditions []condition `json:"conditions"`
	}{w.Task.ID, w.Task.Kind, w.Task.Queue, w.Runnable(), ops.Running(w.Task), set(w.Next()), nil}
	for _, c := range w.Conditions {
		one := condition{Condition: c.Name(), Holds: c.Holds(), Text: c.Describe(w.Task)}
		if !one.Holds {
			one.Ends = set(ops.Ends(c))
		}
		o.Conditions = append(o.Conditions, one)
	}
	return o
}

func printWhy(s screen, w ops.Why) error {
	const holdsWidth, nameWidth = 3, 8
	indent := strings.Repeat(" ", holdsWidth+nameWidth+2*gap)
	var b strings.Builder
	b.WriteString(strings.Join(s.wrap(plain(w.Conclusion()), 0), "\n") + "\n\n")
	for _, c := range w.Conditions {
		mark, colour := "ok", text.FgGreen
		if !c.Holds() {
			mark, colour = "no", text.FgYellow
		}
		mark = fmt.Sprintf("%-*s", holdsWidth, mark)
		if s.colour {
			mark = colour.Sprint(mark)
		}
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, nameWidth, c.Name(), strings.Join(s.wrap(plain(c.Describe(w.Task)), len(indent)), "\n"+indent))
	}
	_, err := io.WriteString(s, b.String())
	return err
}
