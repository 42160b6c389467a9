package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func simulateCommand() *cobra.Command {
	var s simulator
	cmd := &cobra.Command{
		Use:   "simulate [FORMULA...]",
		Short: "Simulate how workers recover from an outage",
		Long: "Simulate how workers recover from an outage, one line for each policy: the numbers of\n" +
			"failed, retried and dead tasks, the longest wait of a due task for a worker, and the\n" +
			"time until the backlog is gone. Leases and the limits of kinds and queues are not\n" +
			"included; with --backlog the output names the limits that live workers apply.\n\n" +
			"With --backlog the simulation begins with the waiting tasks of --kind, or all. The\n" +
			"first line uses their current policies and overrides, and the other lines use each\n" +
			"FORMULA for all tasks. Unless they are set, the number of handlers and the arrival\n" +
			"rate come from live workers. The rate counts all attempts of the last five minutes, so\n" +
			"it is too high while many of them are retries. Tasks that fall due more than a day\n" +
			"after the outage are counted as later.\n\n" +
			"Only --backlog needs a database. It reads all waiting tasks once, and changes nothing.\n\n" + formulaHelp + "\n" + policyFlagHelp,
		Example: `  falldue simulate zizq 10s --outage 30m --per-second 20 --handler 300ms --workers 10
  falldue simulate --backlog --kind charge zizq --outage 30m --handler 300ms`,
		RunE: s.run,
	}
	s.flags(cmd)
	return cmd
}

// simulator has the flags of the command.
type simulator struct {
	profileFlags
	policies policyFlag
	scenario ops.Scenario
	backlog  bool
	kind     string
	limits   []string // which live workers apply to the backlog
	asJSON   bool
}

func (s *simulator) flags(cmd *cobra.Command) {
	boundedSpanVar(cmd.Flags(), &s.scenario.Outage, "outage", 10*time.Minute, 0, longestLimit, "length of the outage, in which all attempts fail")
	rateVar(cmd.Flags(), &s.scenario.PerSecond, "per-second", 10, "tasks enqueued per second")
	boundedSpanVar(cmd.Flags(), &s.scenario.Handler, "handler", 100*time.Millisecond, 0, longestLimit, "duration of a successful attempt")
	boundedSpanVar(cmd.Flags(), &s.scenario.Failure, "failure", 0, 0, longestLimit, "duration of a failed attempt (default as for --handler)")
	countVar(cmd.Flags(), &s.scenario.Workers, "workers", 10, 1_000_000, "concurrent handlers of all workers")
	cmd.Flags().Uint64Var(&s.scenario.Seed, "seed", 1, "seed of the random jitter: the same seed gives the same output")
	cmd.Flags().BoolVar(&s.backlog, "backlog", false, "begin with the waiting tasks")
	cmd.Flags().StringVar(&s.kind, "kind", "", "with --backlog: only waiting tasks of this kind")
	s.place.flags(cmd)
	s.limitFlag(cmd)
	s.policies.flag(cmd)
	cmd.ValidArgsFunction = cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp)
	s.completeNames(cmd, "kind", queueKinds)
	jsonFlag(cmd, &s.asJSON, "print one JSON object per policy")
}

func (s *simulator) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !s.backlog {
		return mistake(errors.New("no FORMULA is given; give at least one, or use --backlog to simulate the waiting tasks"))
	}
	if s.kind != "" && !s.backlog {
		return mistake(errors.New("--kind needs --backlog: it selects waiting tasks"))
	}
	list := make([]simulated, len(args))
	for i, text := range args {
		list[i].policy = text
		var err error
		if list[i].of, err = backoff.Parse(text); err != nil {
			return mistake(err)
		}
	}
	if !s.backlog {
		return s.print(cmd, list)
	}
	return s.ops(cmd.Context(), s.policies, func(o *ops.Ops, _ *falldue.Queue) error {
		if err := s.takeLive(cmd, o); err != nil {
			return err
		}
		p, err := s.read(cmd, o, "")
		if err != nil {
			return err
		}
		if s.scenario.Backlog, err = p.Backlog(s.kind); err != nil {
			return mistake(unknownPolicy(err))
		}
		return s.print(cmd, append([]simulated{{policy: "current policy", live: true}}, list...))
	})
}

// takeLive takes the arrival rate and the number of workers from the live workers, unless they
// are given.
func (s *simulator) takeLive(cmd *cobra.Command, o *ops.Ops) error {
	workers, err := o.Workers(cmd.Context())
	if err != nil {
		return err
	}
	handlers, perSecond := ops.Capacity(workers, s.kind), ops.AttemptRate(workers, s.kind)
	s.limits = announcedLimits(workers, s.kind)
	if !cmd.Flags().Changed("workers") {
		if s.scenario.Workers = handlers; handlers == 0 {
			return mistake(errors.New("no live worker handles these tasks; set the number of handlers with --workers"))
		}
	}
	if !cmd.Flags().Changed("per-second") {
		if s.scenario.PerSecond = perSecond; perSecond == 0 {
			return mistake(errors.New("the live workers have ended no attempt yet; set the arrival rate with --per-second"))
		}
	}
	return nil
}

// print simulates and prints.
func (s *simulator) print(cmd *cobra.Command, list []simulated) (err error) {
	for i := range list {
		r := &list[i]
		r.scenario, r.limits = s.scenario, s.limits
		if r.live {
			r.Recovery, err = ops.SimulateBacklog(cmd.Context(), s.scenario)
		} else {
			r.Recovery, err = ops.Simulate(cmd.Context(), r.of, s.scenario)
		}
		if err != nil {
			return mistake(fmt.Errorf("%s: %w", r.policy, mistaken{err}))
		}
	}
	if s.asJSON {
		return printEach(cmd, list, simulated.object)
	}
	screen := screenOf(cmd)
	if b := s.scenario.Backlog; b != nil {
		tasks := grouped(b.Tasks) + " tasks"
		if s.kind != "" {
			tasks += " of kind " + s.kind
		}
		if _, err := fmt.Fprintf(screen, "%s wait; %s new tasks arrive per second, for %s\n%s\n", tasks, strconv.FormatFloat(s.scenario.PerSecond, 'g', 3, 64), counted(s.scenario.Workers, "handler"), limitsText(s.limits)); err != nil {
			return err
		}
	}
	return printSimulated(screen, list)
}

// simulated is a recovery under a policy.
type simulated struct {
	policy string
	of     backoff.Policy
	live   bool // whether these are the policies in effect
	ops.Recovery
	scenario ops.Scenario
	limits   []string // left out
}

func (s simulated) object() any {
	o := struct {
		Policy      string   `json:"policy"`
		Failed      int      `json:"failed"`
		Retries     int      `json:"retries"`
		Dead        int      `json:"dead"`
		LongestWait float64  `json:"longest_wait_seconds"`
		Recovered   float64  `json:"recovered_seconds"`
		Load        []int    `json:"load"`
		Peak        int      `json:"peak"`
		Later       int      `json:"later,omitempty"`
		Backlog     *int64   `json:"backlog,omitempty"`
		PerSecond   float64  `json:"per_second"`
		Workers     int      `json:"workers"`
		Limits      []string `json:"limits_not_included,omitempty"`
	}{s.policy, s.Failed, s.Retries, s.Dead, s.LongestWait.Seconds(), s.Recovered.Seconds(), s.Load, s.Peak, s.Later, nil, s.scenario.PerSecond, s.scenario.Workers, s.limits}
	if b := s.scenario.Backlog; b != nil {
		o.Backlog = &b.Tasks
	}
	return o
}

func printSimulated(s screen, list []simulated) error {
	columns := []column{
		{name: "policy", least: 12}, {name: "failed", right: true}, {name: "retries", right: true}, {name: "dead", right: true},
		{name: "busiest minute", right: true}, {name: "longest wait", right: true}, {name: "recovered"},
	}
	backlog := list[0].scenario.Backlog != nil
	if backlog {
		columns = append(columns, column{name: "later", right: true})
	}
	var rows [][]string
	for _, r := range list {
		row := []string{
			r.policy, grouped(int64(r.Failed)), grouped(int64(r.Retries)), grouped(int64(r.Dead)), grouped(int64(r.Peak)), words.Span(r.LongestWait), "after " + words.Span(r.Recovered),
		}
		if backlog {
			row = append(row, grouped(int64(r.Later)))
		}
		rows = append(rows, row)
	}
	return s.table(columns, rows)
}
