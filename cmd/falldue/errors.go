package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func errorsCommand() *cobra.Command {
	var p place
	var queue, kind string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "errors",
		Short: "List the errors of failed tasks, the most frequent first",
		Long: "List the errors of tasks that wait for a retry or are dead, the most frequent first,\n" +
			"with the IDs of some tasks. Errors that differ only in numbers, words with digits and\n" +
			"quoted parts count as one. Above the list, a line names each kind with failures in at\n" +
			"least half of the recent attempts on live workers. The command reads up to 10,000\n" +
			"tasks: the newest and the oldest of up to 200 lanes (groups of tasks with the same\n" +
			"delay). Running tasks are left out.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				f, err := o.Failures(cmd.Context())
				if err != nil {
					return err
				}
				f.Groups = slices.DeleteFunc(f.Groups, func(g ops.FailureGroup) bool {
					return queue != "" && g.Queue != queue || kind != "" && g.Kind != kind
				})
				f.Groups = f.Top(limit)
				if asJSON {
					return printEach(cmd, f.Groups, failureObject)
				}
				workers, err := o.Workers(cmd.Context())
				if err != nil {
					return err
				}
				return printErrors(screenOf(cmd), f, slices.DeleteFunc(ops.RunsByKind(workers), func(k ops.KindRuns) bool {
					return !k.Failing() || kind != "" && k.Kind != kind
				}))
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&queue, "queue", "", "list only errors of tasks in this queue")
	cmd.Flags().StringVar(&kind, "kind", "", "list only errors of tasks of this kind")
	countVar(cmd.Flags(), &limit, "limit", 20, 10_000, "maximum number of errors to list")
	p.completeNames(cmd, "queue", queueName)
	p.completeNames(cmd, "kind", queueKinds)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: queue, kind, error, waiting, dead, first, earlier, last, examples")
	return cmd
}

func failureObject(g ops.FailureGroup) any {
	return struct {
		Queue    string    `json:"queue"`
		Kind     string    `json:"kind"`
		Error    string    `json:"error"`
		Waiting  int       `json:"waiting"`
		Dead     int       `json:"dead"`
		First    time.Time `json:"first"`
		Earlier  bool      `json:"earlier,omitempty"`
		Last     time.Time `json:"last"`
		Examples []int64   `json:"examples"`
	}{g.Queue, g.Kind, g.Error, g.Waiting, g.Dead, g.First, g.Earlier, g.Last, g.Examples}
}

func printErrors(s screen, f ops.Failures, failing []ops.KindRuns) error {
	var b strings.Builder
	for _, k := range failing {
		fmt.Fprintf(&b, "%s\n", plain(fmt.Sprintf("kind %s fails: %v", k.Kind, k)))
	}
	if len(f.Groups) == 0 {
		b.WriteString("no failed task is waiting for a retry, and no task is dead\n")
		_, err := io.WriteString(s, b.String())
		return err
	}
	if len(failing) > 0 {
		b.WriteString("\n")
	}
	if _, err := io.WriteString(s, b.String()); err != nil {
		return err
	}
	var rows [][]string
	for _, g := range f.Groups {
		rows = append(rows, []string{g.Kind, grouped(int64(g.Waiting)), grouped(int64(g.Dead)), words.Span(f.At.Sub(g.Last)) + " ago", words.Names(g.Examples), g.Error})
	}
	if err := s.table([]column{
		{name: "kind", least: 8}, {name: "waiting", right: true}, {name: "dead", right: true}, {name: "last"}, {name: "examples"}, {name: "error", least: 12, prose: true},
	}, rows); err != nil || !f.More {
		return err
	}
	_, err := fmt.Fprintf(s, "\nnot all failed tasks are counted: only %s were read, the newest and the oldest of each lane (a group of tasks with the same delay)\n", counted(f.Tasks, "task"))
	return err
}
