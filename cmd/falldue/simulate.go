package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func simulateCommand() *cobra.Command {
	var s ops.Scenario
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "simulate FORMULA...",
		Short: "Show how a system recovers from an outage under policies",
		Long: "Show how a system recovers from an outage under policies, one line for each: how\n" +
			"many tasks fail and are retried, how many are dead, how long the longest was due\n" +
			"before a worker was free, and how long after the outage all is as before. Leases and\n" +
			"limits of the queue are not in it.\n\n" + policyHelp,
		Example: `  falldue simulate zizq 10s --outage 30m --per-second 20 --handler 300ms --workers 10`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := make([]simulated, len(args))
			for i, text := range args {
				policy, err := backoff.Parse(text)
				if err != nil {
					return mistake(err)
				}
				list[i].policy = text
				if list[i].Recovery, err = ops.Simulate(cmd.Context(), policy, s); err != nil {
					return mistake(fmt.Errorf("%s: %w", text, err))
				}
			}
			if asJSON {
				return printEach(cmd, list, simulated.object)
			}
			return printSimulated(screenOf(cmd), list)
		},
	}
	cmd.Flags().DurationVar(&s.Outage, "outage", 10*time.Minute, "how long all attempts that begin fail")
	cmd.Flags().Float64Var(&s.PerSecond, "per-second", 10, "tasks that are enqueued in a second")
	cmd.Flags().DurationVar(&s.Handler, "handler", 100*time.Millisecond, "how long an attempt takes that succeeds")
	cmd.Flags().DurationVar(&s.Failure, "failure", 0, "how long an attempt takes that fails (default as one that succeeds)")
	cmd.Flags().IntVar(&s.Workers, "workers", 10, "handlers that may run at once, of all workers")
	cmd.Flags().Uint64Var(&s.Seed, "seed", 1, "number that makes the jitter repeatable")
	cmd.ValidArgsFunction = cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp)
	jsonFlag(cmd, &asJSON, "print one JSON object per policy")
	return cmd
}

// simulated is a recovery under a policy.
type simulated struct {
	policy string
	ops.Recovery
}

func (s simulated) object() any {
	return struct {
		Policy      string  `json:"policy"`
		Failed      int     `json:"failed"`
		Retries     int     `json:"retries"`
		Dead        int     `json:"dead"`
		LongestWait float64 `json:"longest_wait_seconds"`
		Recovered   float64 `json:"recovered_seconds"`
		Load        []int   `json:"load"`
		Peak        int     `json:"peak"`
	}{s.policy, s.Failed, s.Retries, s.Dead, s.LongestWait.Seconds(), s.Recovered.Seconds(), s.Load, s.Peak}
}

func printSimulated(s screen, list []simulated) error {
	var rows [][]string
	for _, r := range list {
		rows = append(rows, []string{
			r.policy, grouped(int64(r.Failed)), grouped(int64(r.Retries)), grouped(int64(r.Dead)), grouped(int64(r.Peak)), approximate(r.LongestWait), "after " + approximate(r.Recovered),
		})
	}
	return s.table([]column{
		{name: "policy", least: 12}, {name: "failed", right: true}, {name: "retries", right: true}, {name: "dead", right: true},
		{name: "busiest minute", right: true}, {name: "longest wait", right: true}, {name: "recovered"},
	}, rows)
}
