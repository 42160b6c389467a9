package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func policyDiffCommand() *cobra.Command {
	var f profileFlags
	var from string
	var ramp int64
	var apply, yes, asJSON bool
	var who, why string
	cmd := &cobra.Command{
		Use:   "diff KIND FORMULA",
		Short: "Show what another policy would do to the tasks of a kind that wait now",
		Long: "Show what another policy would do to the tasks of a kind that wait now: how many\n" +
			"would be due at once, sooner or later, how many would have no attempt left, and the\n" +
			"busiest minute before and after. The current policy is the one that most live workers\n" +
			"announce, or --from. Tasks with a policy of their own keep it.\n\n" +
			"The exit status is 4 if the new policy makes a herd: a minute with twice as many\n" +
			"tasks as the busiest one under the old policy, and at least 100 more. --ramp shows\n" +
			"steps from one policy to the other that keep each minute below a number of tasks, and\n" +
			"--apply sets them: the workers that run take them, and the last one holds until\n" +
			"\"policy clear\".\n\n" + profileHelp + "\n\n" + formulaHelp,
		Example: `  falldue policy diff invoice.send '5m' --ramp 600`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var old backoff.Policy
			var err error
			if from != "" {
				if old, err = backoff.Parse(from); err != nil {
					return mistake(fmt.Errorf("--from: %w", err))
				}
			}
			next, err := backoff.Parse(args[1])
			if err != nil {
				return mistake(err)
			}
			if cmd.Flags().Changed("ramp") && ramp < 1 {
				return mistake(fmt.Errorf("--ramp %d; allowed are numbers of tasks from 1", ramp))
			}
			if apply && ramp == 0 {
				return mistake(errors.New("--apply without --ramp; set a policy without steps by \"policy set\""))
			}
			return f.inspector(cmd.Context(), policyFlag{}, func(i *ops.Inspector, q *falldue.Queue) error {
				if from == "" {
					if old, err = announcedPolicy(cmd.Context(), i, args[0]); err != nil {
						return err
					}
					from = old.String()
				}
				p, err := f.read(cmd, i, "")
				if err != nil {
					return err
				}
				d := diff{from: from, to: args[1], ramp: ramp}
				if d.Diff, err = p.Diff(args[0], old, next, f.horizon); err != nil {
					return mistake(err)
				}
				if ramp > 0 {
					if d.steps, err = p.Ramp(args[0], old, next, ramp); err != nil {
						return err
					}
				}
				if asJSON {
					err = jsonLines(cmd.OutOrStdout()).Encode(d.object())
				} else {
					err = d.print(screenOf(cmd))
				}
				if err == nil && apply {
					return d.apply(cmd, q, falldue.OverrideOptions{Who: who, Why: why}, yes, asJSON)
				}
				if err == nil && d.Herd {
					return finding(exitAttention)
				}
				return err
			})
		},
	}
	f.flags(cmd)
	f.horizonFlag(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return f.namesOf(queueKinds)(cmd, args, toComplete)
		}
		return presetNames(), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().StringVar(&from, "from", "", "the policy that the kind has (default the one that most live workers announce)")
	cmd.Flags().Int64Var(&ramp, "ramp", 0, "show steps under which at most so many tasks fall due in a minute")
	cmd.Flags().BoolVar(&apply, "apply", false, "set the steps of --ramp, which the workers that run take")
	whoFlags(cmd, &who, &why)
	yesFlag(cmd, &yes)
	complete(cmd, "from", presetNames()...)
	cmd.ValidArgsFunction = f.kindAndPolicy()
	jsonFlag(cmd, &asJSON, "print one JSON object, with both loads and the steps")
	return cmd
}

// announcedPolicy returns the policy of a kind that most live workers have.
func announcedPolicy(ctx context.Context, i *ops.Inspector, kind string) (backoff.Policy, error) {
	policies, err := i.Policies(ctx)
	if err != nil {
		return backoff.Policy{}, err
	}
	policy, known := policies.Code(falldue.TaskInfo{Kind: kind})
	if !known {
		return backoff.Policy{}, mistake(fmt.Errorf("no live worker announces a policy of kind %s; say by --from which one the code has", kind))
	}
	return policy, nil
}

// diff is a difference with the texts of the policies.
type diff struct {
	ops.Diff
	from, to string
	ramp     int64 // how many tasks may fall due in a minute
	steps    []ops.Step
}

func (d diff) print(s screen) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tasks of %s wait under its policy\n", grouped(d.Tasks), d.Kind)
	for _, line := range []struct {
		n    int64
		text string
	}{
		{d.AtOnce, "would be due at once"}, {d.Sooner, "would be due sooner"}, {d.Later, "would be due later"},
		{d.Exhausted, "would have no attempt left, and be dead when they fall due"},
	} {
		fmt.Fprintf(&b, "%12s  %s\n", grouped(line.n), line.text)
	}
	if d.Own > 0 {
		fmt.Fprintf(&b, "%12s  more have a policy of their own, which they keep\n", grouped(d.Own))
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(s, b.String()); err != nil {
		return err
	}
	row := func(name, policy string, l ops.Load) []string {
		return []string{name, policy, grouped(l.Due), peakText(l)}
	}
	if err := s.table([]column{{name: ""}, {name: "policy", least: 12}, {name: "due now", right: true}, {name: "busiest minute"}},
		[][]string{row("before", d.from, d.Before), row("after", d.to, d.After)}); err != nil {
		return err
	}
	b.Reset()
	if within(d.After, len(d.After.Minutes)) > 0 {
		fmt.Fprintf(&b, "\n%s\n", minutesChart(d.After.Minutes, "after: due in "))
	}
	if d.Herd {
		fmt.Fprintf(&b, "\nwarning: this makes a herd: %s tasks fall due in one minute, and %s in the busiest one before", grouped(d.After.Peak), grouped(d.Before.Peak))
		if d.steps == nil {
			b.WriteString("; --ramp shows steps that do not")
		}
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(s, b.String()); err != nil || d.steps == nil {
		return err
	}
	return d.printSteps(s)
}

// shownSteps is the greatest number of steps that are printed for people.
const shownSteps = 12

func (d diff) printSteps(s screen) error {
	var rows [][]string
	each := (len(d.steps) + shownSteps - 1) / shownSteps
	for i, step := range d.steps {
		if i%each == 0 || i == len(d.steps)-1 {
			rows = append(rows, []string{approximate(step.After), grouped(step.Due), step.Policy.String()})
		}
	}
	if _, err := fmt.Fprintf(s, "\n%d steps", len(d.steps)); err != nil {
		return err
	}
	if each > 1 {
		if _, err := fmt.Fprintf(s, ", some of which are shown; --json prints all"); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	if err := d.warnOfCrowds(s); err != nil {
		return err
	}
	return s.table([]column{{name: "after", right: true}, {name: "due a minute", right: true}, {name: "policy", least: 20}}, rows)
}

// warnOfCrowds names the busiest step if more tasks fall due in it than --ramp says.
func (d diff) warnOfCrowds(s screen) error {
	if len(d.steps) == 0 {
		return nil
	}
	busiest := slices.MaxFunc(d.steps, func(a, b ops.Step) int { return cmp.Compare(a.Due, b.Due) })
	if busiest.Due <= d.ramp {
		return nil
	}
	_, err := fmt.Fprintf(s, "warning: %s tasks fall due in the minute after %s, more than %s: they failed at nearly the same moment, or are due already\n",
		grouped(busiest.Due), approximate(busiest.After), grouped(d.ramp))
	return err
}

// apply sets the steps.
func (d diff) apply(cmd *cobra.Command, q *falldue.Queue, o falldue.OverrideOptions, yes, asJSON bool) error {
	steps, err := ops.Overrides(d.steps)
	if err != nil {
		return err
	}
	if err := confirm(cmd, fmt.Sprintf("--apply changes the policy of %s in %d steps", d.Kind, len(steps)), yes); err != nil {
		return err
	}
	o.Steps = steps[1:]
	if err := q.SetPolicy(cmd.Context(), falldue.Subject{Kind: d.Kind}, steps[0].Override, o); err != nil || asJSON {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nset for kind:%s: the first of %d steps; the last one holds until it is cleared\n", d.Kind, len(steps))
	return err
}

func (d diff) object() any {
	type step struct {
		After  float64 `json:"after_seconds"`
		Share  float64 `json:"share"`
		Policy string  `json:"policy"`
		Due    int64   `json:"due"`
	}
	o := struct {
		Kind      string   `json:"kind"`
		From      string   `json:"from"`
		To        string   `json:"to"`
		Tasks     int64    `json:"tasks"`
		Own       int64    `json:"own"`
		AtOnce    int64    `json:"at_once"`
		Sooner    int64    `json:"sooner"`
		Later     int64    `json:"later"`
		Exhausted int64    `json:"exhausted"`
		Herd      bool     `json:"herd"`
		Before    loadJSON `json:"before"`
		After     loadJSON `json:"after"`
		Steps     []step   `json:"steps,omitempty"`
	}{d.Kind, d.from, d.to, d.Tasks, d.Own, d.AtOnce, d.Sooner, d.Later, d.Exhausted, d.Herd, loadObject(d.Before), loadObject(d.After), nil}
	for _, s := range d.steps {
		o.Steps = append(o.Steps, step{s.After.Seconds(), s.Share, s.Policy.String(), s.Due})
	}
	return o
}

// minutesChart draws how many tasks fall due in each minute.
func minutesChart(minutes []int64, caption string) string {
	last := 0
	load := make([]int, len(minutes))
	for i, n := range minutes {
		if load[i] = int(n); n > 0 {
			last = i
		}
	}
	return loadChart(ops.Herd{Bucket: time.Minute, Load: load[:max(last+1, min(10, len(load)))]}, caption)
}
