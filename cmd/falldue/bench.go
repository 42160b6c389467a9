package main

import (
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue/ops"
)

// benchConnections is the size of the pool.
const benchConnections = 20

func benchCommand() *cobra.Command {
	p := place{creates: true}
	var b ops.Benchmark
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many tasks per second this server can insert and run",
		Long: "Measure how many tasks a process can insert and run on this server, with handlers that\n" +
			"do nothing, and how soon a worker starts a task that another process enqueues. The command\n" +
			"creates separate tables, and drops them at the end, even if you interrupt it. The\n" +
			"server is busy in the meantime, so the command asks first, unless --yes is set. The\n" +
			"user needs permission to create tables.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			what := fmt.Sprintf("bench creates tables whose names begin with falldue_bench_, inserts and runs %s tasks as fast as it can, and drops the tables", grouped(int64(b.Tasks)))
			if err := confirm(cmd, what, yes); err != nil {
				return err
			}
			return p.open(cmd.Context(), func(db *sqlx.DB) error {
				db.SetMaxIdleConns(benchConnections)
				db.SetMaxOpenConns(benchConnections)
				return ops.Measure(cmd.Context(), db, b, func(m ops.Measurement) error {
					if asJSON {
						return jsonLines(cmd.OutOrStdout()).Encode(measurementObject(m))
					}
					_, err := fmt.Fprintln(cmd.OutOrStdout(), measurementLine(m))
					return err
				})
			})
		},
	}
	p.databaseFlags(cmd)
	cmd.Flags().StringVar(&b.Schema, "schema", "", "PostgreSQL schema of the tables (default the connection's search path)")
	countVar(cmd.Flags(), &b.Tasks, "tasks", 20_000, ops.MaxMeasured, "number of tasks to run")
	countVar(cmd.Flags(), &b.Handlers, "handlers", 100, 100_000, "number of concurrent handlers")
	countVar(cmd.Flags(), &b.Starts, "starts", 200, ops.MaxMeasured, "number of tasks whose start is timed")
	yesFlag(cmd, &yes)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: measure, tasks, and per_second, or median_seconds and p99_seconds")
	return cmd
}

func measurementObject(m ops.Measurement) any {
	return struct {
		Measure   string  `json:"measure"`
		Tasks     int     `json:"tasks"`
		PerSecond float64 `json:"per_second,omitempty"`
		Median    float64 `json:"median_seconds,omitempty"`
		P99       float64 `json:"p99_seconds,omitempty"`
	}{m.Measure, m.Tasks, m.PerSecond, m.Median.Seconds(), m.P99.Seconds()}
}

func measurementLine(m ops.Measurement) string {
	if m.PerSecond > 0 {
		return fmt.Sprintf("%-12s %10s tasks a second", m.Measure, grouped(int64(m.PerSecond)))
	}
	const digits = 100 * time.Microsecond
	return fmt.Sprintf("%-12s %10v at the median, %v for 99 of 100 tasks", m.Measure, m.Median.Round(digits), m.P99.Round(digits))
}
