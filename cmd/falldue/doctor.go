package main

import (
	"fmt"
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
		Short: "Find problems, and suggest fixes",
		Long: "Check the server, the tables, the workers and the backlog, and suggest fixes. The\n" +
			"command changes nothing. Each check has a time limit of 10 seconds. A check that\n" +
			"cannot run is shown as \"unchecked\", with the reason, and does not change the\n" +
			"exit status.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				findings, err := o.Diagnose(cmd.Context())
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

// wrap breaks a text into lines that fit the terminal alongside an indentation.
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
