package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

const policyHelp = "This command needs no database. " + formulaHelp

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show, compare and change retry policies",
		Long: "Show, compare and change retry policies: how long tasks wait after a failure. Only\n" +
			"diff and the commands that show or change overrides need a database.\n\n" + formulaHelp,
	}
	cmd.AddCommand(policyListCommand(), policyEvalCommand(), policyPreviewCommand(), policyHerdCommand(), policyDiffCommand(),
		policySetCommand(), policySlowCommand(), policyHoldCommand(), policyRampCommand(), policyShowCommand(), policyClearCommand(), policyHistoryCommand(), policySQLCommand(), policyWhereCommand())
	return cmd
}

func policyEvalCommand() *cobra.Command {
	var jitter, attempts string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval FORMULA",
		Short: "Print the delay and the jitter after each failure",
		Long: "Print the delay and the jitter after each number of failed attempts. The jitter is the\n" +
			"width of the random part that is added to the delay.\n\n" + policyHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := backoff.Parse(args[0])
			if err != nil {
				return mistake(err)
			}
			if cmd.Flags().Changed("jitter") {
				policy = policy.WithJitter(jitter)
			}
			if err := policy.Err(); err != nil {
				return mistake(err)
			}
			ranges, err := parseAttempts(attempts)
			if err != nil {
				return mistake(err)
			}
			return printEval(cmd.Context(), cmd.OutOrStdout(), policy, ranges, asJSON)
		},
	}
	cmd.Flags().StringVar(&jitter, "jitter", "", "formula for the jitter; the name \"delay\" stands for the delay")
	cmd.Flags().StringVar(&attempts, "attempts", "1-25", "numbers and ranges of failed attempts, such as 0-30,1000")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line: n, seconds, jitter_seconds")
	cmd.ValidArgsFunction = presetArguments(0, 1)
	return cmd
}

func printEval(ctx context.Context, out io.Writer, policy backoff.Policy, ranges []attemptRange, asJSON bool) error {
	w := bufio.NewWriter(out)
	if !asJSON {
		fmt.Fprintf(w, "%10s  %20s  %20s\n", "n", "delay", "jitter")
	}
	lines := json.NewEncoder(w)
	for _, r := range ranges {
		for n := r.from; n <= r.to; n++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !asJSON {
				delay, jitter := policy.Wait(n)
				if _, err := fmt.Fprintf(w, "%10d  %20s  %20s\n", n, delay, jitter); err != nil {
					return err
				}
				continue
			}
			if err := lines.Encode(struct {
				N       int64   `json:"n"`
				Seconds float64 `json:"seconds"`
				Jitter  float64 `json:"jitter_seconds"`
			}{n, policy.Delay().Eval(n), policy.Jitter().Eval(n)}); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func policySQLCommand() *cobra.Command {
	var engine, attempts string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sql FORMULA --engine ENGINE",
		Short: "Print the delay in seconds as an SQL expression",
		Long:  "Print only the SQL expression for the delay in seconds.\n\n" + policyHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, policy, err := engineAndPolicy(engine, args[0])
			if err != nil {
				return mistake(err)
			}
			if attempts == "" {
				return mistake(errors.New("--attempts-column is empty; it must name the column that counts failed attempts"))
			}
			return printSQL(cmd, policy.Delay().SQL(d, d.Quote(attempts)), asJSON)
		},
	}
	engineFlag(cmd, &engine)
	cmd.Flags().StringVar(&attempts, "attempts-column", "attempts", "name of the column that counts failed attempts")
	jsonFlag(cmd, &asJSON, "print one JSON object: sql")
	cmd.ValidArgsFunction = presetArguments(0, 1)
	return cmd
}

func printSQL(cmd *cobra.Command, sql string, asJSON bool) error {
	if asJSON {
		return jsonLines(cmd.OutOrStdout()).Encode(struct {
			SQL string `json:"sql"`
		}{sql})
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), sql)
	return err
}

func policyWhereCommand() *cobra.Command {
	var engine string
	var asJSON bool
	var params sqlgen.DueParams
	cmd := &cobra.Command{
		Use:   "where FORMULA --engine ENGINE",
		Short: "Print an SQL predicate for due rows",
		Long: "Print an SQL predicate that is true for due rows. The table needs a column with the\n" +
			"number of failed attempts, and a column with the time of the last change. The\n" +
			"predicate does not include the jitter.\n\n" + policyHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, policy, err := engineAndPolicy(engine, args[0])
			if err != nil {
				return mistake(err)
			}
			predicate, err := sqlgen.Due(d, policy.Delay(), params)
			if err != nil {
				return mistake(err)
			}
			return printSQL(cmd, predicate, asJSON)
		},
	}
	engineFlag(cmd, &engine)
	cmd.Flags().StringVar(&params.AttemptsColumn, "attempts-column", "attempts", "name of the column that counts failed attempts")
	cmd.Flags().StringVar(&params.UpdatedAtColumn, "updated-at-column", "updated_at", "name of the column with the time of the last change, at which the wait starts")
	cmd.Flags().StringVar(&params.Table, "table", "", "table or alias to qualify the columns with")
	cmd.Flags().BoolVar(&params.UTC, "utc", false, "times without a time zone are in UTC (default the session's time zone)")
	jsonFlag(cmd, &asJSON, "print one JSON object: sql")
	cmd.ValidArgsFunction = presetArguments(0, 1)
	return cmd
}

func engineFlag(cmd *cobra.Command, engine *string) {
	choiceVar(cmd.Flags(), engine, "engine", engineNames(), oneOf(engineNames()))
	complete(cmd, "engine", engineNames()...)
	if err := cmd.MarkFlagRequired("engine"); err != nil {
		panic(err) // the line above defines the flag
	}
}

// engineNames are the values of --engine.
func engineNames() (names []string) {
	for _, name := range dialect.Names {
		names = append(names, string(name))
	}
	return names
}

// presetArguments completes the arguments from one place on, up to another or, if that is 0,
// all that follow, by the names of presets.
func presetArguments(from, to int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if n := len(args); n < from || to > 0 && n >= to {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return presetNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

func engineAndPolicy(engine, formula string) (dialect.Dialect, backoff.Policy, error) {
	d, err := dialect.Of(dialect.Name(engine))
	if err != nil {
		return nil, backoff.Policy{}, err
	}
	policy, err := backoff.Parse(formula)
	return d, policy, err
}
