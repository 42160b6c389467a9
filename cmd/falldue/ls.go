package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func lsCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var selected filterFlags
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [ID...]",
		Short: "List tasks",
		Long: "List tasks in the order of their IDs: the tasks with the given IDs, or all tasks that\n" +
			"match the flags. The last line shows how to list the next page. New and deleted tasks\n" +
			"do not shift pages. With --phase or --match, the command examines up to 10,000 tasks\n" +
			"for a page, and the last line reports if there are more.\n\n" + policyFlagHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			filter := selected.get()
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, q *falldue.Queue) error {
				l := lister{cmd, o, q, asJSON}
				if len(ids) > 0 {
					return l.listIDs(ids)
				}
				return l.listPages(filter, selected.list, all)
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	selected.flags(cmd, &p, "list")
	countVar(cmd.Flags(), &selected.list.Limit, "limit", 100, 10_000, "number of tasks on a page, up to 10,000")
	cmd.Flags().BoolVar(&all, "all", false, "list all pages")
	jsonFlag(cmd, &asJSON, "print one JSON object per task")
	return cmd
}

// parseIDs parses the IDs of tasks.
func parseIDs(args []string) (ids []int64, err error) {
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, mistake(fmt.Errorf("%q: %s", arg, idRule))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// lister lists tasks.
type lister struct {
	cmd    *cobra.Command
	ops    *ops.Ops
	queue  *falldue.Queue
	asJSON bool
}

// listIDs lists the tasks with the IDs that exist. The error names the first one that
// does not.
func (l lister) listIDs(ids []int64) error {
	var tasks []falldue.TaskInfo
	var missing error
	for _, id := range ids {
		t, err := l.queue.Task(l.cmd.Context(), id)
		if errors.Is(err, falldue.ErrNotFound) {
			if missing == nil {
				missing = err
			}
			continue
		}
		if err != nil {
			return err
		}
		tasks = append(tasks, t)
	}
	if len(tasks) > 0 {
		if err := l.ops.SetPhases(l.cmd.Context(), tasks); err != nil {
			return err
		}
		if err := l.print(tasks); err != nil {
			return err
		}
	}
	return missing
}

// listPages lists the tasks that match a filter, a page of them or all.
func (l lister) listPages(f ops.Filter, list ops.ListOptions, all bool) error {
	for first := true; ; first = false {
		page, err := l.ops.Tasks(l.cmd.Context(), f, list)
		if err != nil {
			return err
		}
		if len(page.Tasks) > 0 || first && !page.More {
			if err := l.print(page.Tasks); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		list.After = page.Next
		if !all {
			text := fmt.Sprintf("the next page: --after %d\n", list.After)
			if page.Bounded {
				text = fmt.Sprintf("10,000 tasks were examined; to continue: --after %d\n", list.After)
			}
			if !l.asJSON {
				_, err = fmt.Fprint(l.cmd.OutOrStdout(), text)
			} else if page.Bounded { // which programs cannot see in the tasks
				_, err = fmt.Fprint(l.cmd.ErrOrStderr(), text)
			}
			return err
		}
	}
}

func (l lister) print(tasks []falldue.TaskInfo) error {
	if l.asJSON {
		return printEach(l.cmd, tasks, func(t falldue.TaskInfo) any { return taskObject(t) })
	}
	var keys []string
	for _, t := range tasks {
		keys = append(keys, t.Policy)
	}
	known, err := l.ops.Policies(l.cmd.Context(), keys...)
	if err != nil {
		return err
	}
	rows := make([][]string, len(tasks))
	for i, t := range tasks {
		rows[i] = []string{
			strconv.FormatInt(t.ID, 10), t.Queue, t.Kind, string(t.Phase), strconv.Itoa(t.Attempts), moment(t, known), t.LastError,
		}
	}
	return screenOf(l.cmd).table([]column{
		{name: "id", right: true}, {name: "queue", least: 8}, {name: "kind", least: 8}, {name: "phase"}, {name: "attempts", right: true}, {name: "when"}, {name: "last error", least: 12, prose: true},
	}, rows)
}

// moment says when a task is due, or since when it is as it is.
func moment(t falldue.TaskInfo, known ops.Policies) string {
	switch {
	case ops.Running(t):
		return "runs, lease " + words.Span(t.UpdatedAt.Sub(t.Now))
	case t.State != falldue.StateOpen && t.State != falldue.StateSnoozed:
		return words.Span(max(t.Now.Sub(t.UpdatedAt), 0)) + " ago"
	}
	if due := known.Due(t); !due.IsZero() {
		return dueText(due, t.Now)
	}
	return "tried " + words.Span(max(t.Now.Sub(t.AttemptedAt), 0)) + " ago"
}

// taskJSON is a task as JSON.
type taskJSON struct {
	ID               int64             `json:"id"`
	Queue            string            `json:"queue"`
	Kind             string            `json:"kind"`
	Key              string            `json:"key,omitempty"`
	Policy           string            `json:"policy,omitempty"`
	Priority         int               `json:"priority"`
	State            falldue.State     `json:"state"`
	Phase            falldue.Phase     `json:"phase,omitempty"`
	Running          bool              `json:"running"`
	Attempts         int               `json:"attempts"`
	MaxAttempts      int               `json:"max_attempts,omitempty"`
	Timeout          string            `json:"timeout,omitempty"`
	ExpireAt         *time.Time        `json:"expire_at,omitempty"`
	Fence            int64             `json:"fence"`
	UpdatedAt        time.Time         `json:"updated_at"`
	CreatedAt        time.Time         `json:"created_at"`
	FirstAttemptedAt *time.Time        `json:"first_attempted_at,omitempty"`
	AttemptedAt      *time.Time        `json:"attempted_at,omitempty"`
	Now              time.Time         `json:"now"`
	ClaimedBy        string            `json:"claimed_by,omitempty"`
	LastError        string            `json:"last_error,omitempty"`
	Payload          json.RawMessage   `json:"payload"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	Result           json.RawMessage   `json:"result,omitempty"`
}

// ownTimeout returns the timeout of a task that has one of its own.
func ownTimeout(t falldue.TaskInfo) string {
	if t.Timeout == 0 {
		return ""
	}
	return t.Timeout.String()
}

func taskObject(t falldue.TaskInfo) taskJSON {
	return taskJSON{
		ID: t.ID, Queue: t.Queue, Kind: t.Kind, Key: t.Key, Policy: t.Policy, Priority: t.Priority, State: t.State, Phase: t.Phase, Running: ops.Running(t),
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Timeout: ownTimeout(t), ExpireAt: set(t.ExpireAt), Fence: t.Fence, UpdatedAt: t.UpdatedAt, CreatedAt: t.CreatedAt,
		FirstAttemptedAt: set(t.FirstAttemptedAt), AttemptedAt: set(t.AttemptedAt), Now: t.Now, ClaimedBy: t.ClaimedBy,
		LastError: t.LastError, Payload: t.Payload, Metadata: t.Metadata, Result: t.Result,
	}
}
