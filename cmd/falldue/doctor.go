package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func doctorCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server, the tables and what waits in them",
		Long: "Check the server, the tables and what waits in them, and say what to do about what\n" +
			"is wrong. Nothing is changed. Each check may take 10 seconds; one that cannot be made\n" +
			"is unchecked, says why, and does not change the status. For monitoring: the exit\n" +
			"status is 5 if something does not work, 4 if somebody should look at something, and 0\n" +
			"otherwise.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inspector(cmd.Context(), policies, func(i *ops.Inspector, _ *falldue.Queue) error {
				findings, err := i.Diagnose(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					err = printEach(cmd, findings, func(f ops.Finding) any {
						return struct {
							Check  string `json:"check"`
							Level  string `json:"level"`
							Text   string `json:"text"`
							Advice string `json:"advice,omitempty"`
						}{f.Check, f.Level.String(), f.Text, f.Advice}
					})
				} else {
					err = printFindings(screenOf(cmd), findings)
				}
				if err != nil {
					return err
				}
				return verdict(findings)
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per finding: check, level, text, advice")
	return cmd
}

// verdict returns the exit status that findings make.
func verdict(findings []ops.Finding) error {
	worst := ops.Fine
	for _, f := range findings {
		worst = max(worst, f.Level)
	}
	switch worst {
	case ops.Broken:
		return finding(exitBroken)
	case ops.Attention:
		return finding(exitAttention)
	}
	return nil
}

var levelColours = map[ops.Level]text.Colors{
	ops.Fine: {text.FgGreen}, ops.Unchecked: {text.FgCyan}, ops.Attention: {text.FgYellow}, ops.Broken: {text.FgRed, text.Bold},
}

// printFindings prints a line for each finding, and one for what to do.
func printFindings(s screen, findings []ops.Finding) error {
	const levelWidth, checkWidth, arrowWidth = 9, 12, 2
	indent := strings.Repeat(" ", levelWidth+checkWidth+2*gap)
	for _, f := range findings {
		level := fmt.Sprintf("%-*s", levelWidth, f.Level)
		if s.colour {
			level = levelColours[f.Level].Sprint(level)
		}
		lines := s.wrap(plain(f.Text), len(indent))
		if f.Advice != "" {
			advice := s.wrap(plain(f.Advice), len(indent)+arrowWidth)
			lines = append(lines, "→ "+strings.Join(advice, "\n"+indent+strings.Repeat(" ", arrowWidth)))
		}
		if _, err := fmt.Fprintf(s, "%s  %-*s  %s\n", level, checkWidth, f.Check, strings.Join(lines, "\n"+indent)); err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks a text into lines that fit the terminal beside an indentation.
func (s screen) wrap(line string, indent int) []string {
	if s.width <= indent+20 {
		return []string{line}
	}
	lines := strings.Split(text.WrapSoft(line, s.width-indent), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func explainCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [QUEUE]",
		Short: "Show the statements that look for due tasks, and this server's plans of them",
		Long: "Show the statements with which a worker claims tasks from a queue, \"default\" if none\n" +
			"is named, with this server's plans of them and a verdict. Nothing is claimed, but\n" +
			"servers ask for the right to. The exit status is 4 if a plan reads a whole table,\n" +
			"which is right while there are few tasks.\n\n" + policyFlagHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue := falldue.DefaultQueue
			if len(args) > 0 {
				queue = args[0]
			}
			return p.inspector(cmd.Context(), policies, func(i *ops.Inspector, _ *falldue.Queue) error {
				plans, err := i.Explain(cmd.Context(), queue)
				if err != nil {
					return err
				}
				if asJSON {
					err = printEach(cmd, plans, func(p ops.Plan) any {
						return struct {
							SQL        string   `json:"sql"`
							Plan       []string `json:"plan"`
							WholeTable bool     `json:"whole_table"`
						}{p.SQL, p.Lines, p.WholeTable}
					})
				} else {
					err = printPlans(screenOf(cmd), queue, plans)
				}
				for _, p := range plans {
					if err == nil && p.WholeTable {
						return finding(exitAttention)
					}
				}
				return err
			})
		},
	}
	p.flags(cmd)
	cmd.ValidArgsFunction = p.namesOf(queueName)
	policies.flag(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per statement: sql, plan, whole_table")
	return cmd
}

func printPlans(s screen, queue string, plans []ops.Plan) error {
	if len(plans) == 0 {
		_, err := fmt.Fprintf(s, "no task waits in queue %s\n", plain(queue))
		return err
	}
	var b strings.Builder
	for i, p := range plans {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.SQL + "\n\n")
		for _, line := range p.Lines {
			b.WriteString("  " + plain(line) + "\n")
		}
		verdict := "it reads ranges of the index, however many tasks wait"
		if p.WholeTable {
			verdict = "it reads a whole table, which is right while there are few tasks; if there are many, update the statistics (ANALYZE)"
		}
		b.WriteString("\nverdict: " + verdict + "\n")
	}
	_, err := io.WriteString(s, b.String())
	return err
}
