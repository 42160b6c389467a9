package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func explainCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [QUEUE]",
		Short: "Show the workers' statements with their query plans",
		Long: "Show the statements that workers of a queue (by default \"default\") send: polls,\n" +
			"claims with and without limits, extensions of leases, and outcomes, each with this\n" +
			"server's query plan and a verdict. Inserts and the statements of flows, unique tasks\n" +
			"and progress are left out. Limits are taken from live workers. The command changes\n" +
			"nothing, but servers require the permissions of a worker. Status 4 means that a plan\n" +
			"reads the whole table of tasks, which is the right plan only while the table is small.\n\n" + policyFlagHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue := falldue.DefaultQueue
			if len(args) > 0 {
				queue = args[0]
			}
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				plans, err := o.Explain(cmd.Context(), queue)
				if err != nil {
					return err
				}
				if asJSON {
					err = printEach(cmd, plans, func(p ops.Plan) any {
						return struct {
							Statement  string   `json:"statement"`
							SQL        string   `json:"sql"`
							Plan       []string `json:"plan"`
							WholeTable bool     `json:"whole_table"`
							Error      string   `json:"error,omitempty"`
						}{p.Statement, p.SQL, append([]string{}, p.Lines...), p.WholeTable, errorText(p.Err)}
					})
				} else {
					err = printPlans(screenOf(cmd), queue, plans)
				}
				if err == nil && len(wholeTable(plans)) > 0 {
					return finding(exitAttention)
				}
				for _, p := range plans {
					err = cmp.Or(err, p.Err)
				}
				return err
			})
		},
	}
	p.flags(cmd)
	cmd.ValidArgsFunction = p.namesOf(queueName)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per statement: statement, sql, plan, whole_table, error")
	return cmd
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// wholeTable names the statements that read the whole table.
func wholeTable(plans []ops.Plan) (names []string) {
	for _, p := range plans {
		if p.WholeTable && !slices.Contains(names, p.Statement) {
			names = append(names, p.Statement)
		}
	}
	return names
}

func printPlans(s screen, queue string, plans []ops.Plan) error {
	if len(plans) == 0 {
		_, err := fmt.Fprintf(s, "no task waits in queue %s\n", plain(queue))
		return err
	}
	var b strings.Builder
	for _, p := range plans {
		heading := p.Statement + ":"
		if s.colour {
			heading = text.Bold.Sprint(heading)
		}
		b.WriteString(heading + "\n" + p.SQL + "\n\n")
		for _, line := range p.Lines {
			b.WriteString("  " + plain(line) + "\n")
		}
		verdict := "the statement reads ranges of indexes, however many tasks there are"
		switch {
		case p.Err != nil:
			verdict = "unknown, since the server does not explain it: " + plain(p.Err.Error())
		case p.WholeTable:
			verdict = "the statement reads the whole table, which is right while there are few tasks; if there are many, update the statistics (ANALYZE)"
		}
		if len(p.Lines) > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("verdict: " + verdict + "\n\n")
	}
	all := counted(len(plans), "statement")
	if unknown := slices.DeleteFunc(slices.Clone(plans), func(p ops.Plan) bool { return p.Err == nil }); len(unknown) > 0 {
		all += fmt.Sprintf(" (%d of them not explained by the server)", len(unknown))
	}
	verdict := "none reads the whole table"
	if names := wholeTable(plans); len(names) > 0 {
		verdict = "these read the whole table: " + strings.Join(names, ", ")
	}
	fmt.Fprintf(&b, "of %s %s\n", all, verdict)
	_, err := io.WriteString(s, b.String())
	return err
}
