package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/ops"
)

func overdueCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var olderThan time.Duration
	var limited, asJSON bool
	cmd := &cobra.Command{
		Use:   "overdue",
		Short: "List tasks that have been due for more than a minute",
		Long: "List, by queue and kind, the tasks that have been due for more than a minute. The\n" +
			"reason is that no worker handles their kind in their queue, that all such workers are\n" +
			"busy, that a limit or an unfinished task of the same key (InOrder) delays them, or\n" +
			"that a dead task of the same key halts them. Tasks are counted up to 1,000. Policies and limits come from live workers.\n" +
			"Policies also come from --policy, from tasks, and from overrides. A failed task with\n" +
			"an unknown policy counts as due a day after its failure. Status 4 means that some\n" +
			"tasks wait for a worker or behind a dead task, or with --limited that any task is\n" +
			"listed.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if olderThan <= 0 {
				return mistake(fmt.Errorf("--older-than %v: must be above 0", olderThan))
			}
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				list, err := o.Overdue(cmd.Context(), olderThan)
				if err != nil {
					return err
				}
				slices.SortStableFunc(list, func(a, b ops.Overdue) int { return cmp.Compare(a.DueSince.UnixMicro(), b.DueSince.UnixMicro()) })
				if limited {
					list = slices.DeleteFunc(list, func(o ops.Overdue) bool { return o.Limit == "" })
				}
				if err := printOverdue(cmd, list, asJSON); err != nil {
					return err
				}
				if slices.ContainsFunc(list, func(o ops.Overdue) bool { return limited || o.Stuck() }) {
					return finding(exitAttention)
				}
				return nil
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	spanVar(cmd.Flags(), &olderThan, "older-than", overdue.After, "list tasks that have been due for longer than this")
	cmd.Flags().BoolVar(&limited, "limited", false, "list only tasks that a limit or InOrder delays")
	jsonFlag(cmd, &asJSON, "print one JSON object per line: queue, kind, tasks, due_since, limit, halted_by")
	return cmd
}

func printOverdue(cmd *cobra.Command, list []ops.Overdue, asJSON bool) error {
	if asJSON {
		return printEach(cmd, list, func(o ops.Overdue) any {
			return struct {
				Queue    string    `json:"queue"`
				Kind     string    `json:"kind"`
				Tasks    int       `json:"tasks"`
				DueSince time.Time `json:"due_since"`
				Limit    string    `json:"limit,omitempty"`
				HaltedBy int64     `json:"halted_by,omitempty"`
			}{o.Queue, o.Kind, o.Tasks, o.DueSince, o.Limit, o.HaltedBy}
		})
	}
	s := screenOf(cmd)
	if len(list) == 0 {
		_, err := s.Write([]byte("nothing is overdue\n"))
		return err
	}
	var rows [][]string
	for _, o := range list {
		tasks := grouped(int64(o.Tasks))
		if o.More {
			tasks += " or more"
		}
		waits := cmp.Or(o.Limit, "a worker")
		if o.HaltedBy != 0 {
			waits = fmt.Sprintf("dead task %d, which halts the tasks of its key", o.HaltedBy)
		}
		rows = append(rows, []string{o.Queue, o.Kind, tasks, o.DueSince.Format(time.DateTime) + " UTC", waits})
	}
	return s.table([]column{{name: "queue", least: 8}, {name: "kind", least: 8}, {name: "tasks", right: true}, {name: "due since"}, {name: "waits for", least: 8}}, rows)
}
