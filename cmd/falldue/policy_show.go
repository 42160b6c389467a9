package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func policyClearCommand() *cobra.Command {
	var f setter
	cmd := &cobra.Command{
		Use:   "clear SUBJECT",
		Short: "Clear an override, and restore the program's policy",
		Long: "Clear an override. Workers use the program's policy again within two seconds. Tasks\n" +
			"that have waited for longer than that policy's delay are due immediately: see \"policy\n" +
			"ramp\". The command asks for confirmation if more than --ask-above waiting tasks would\n" +
			"be dead or due immediately, or if their policy is not known.\n\n" + subjectHelp + "\n" + policyFlagHelp,
		Example: "  falldue policy clear invoice.send --why 'the provider is back'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := falldue.ParseSubject(args[0])
			if err != nil {
				return err
			}
			return f.ops(cmd.Context(), f.policies, func(o *ops.Ops, _ *falldue.Queue) error { return f.clear(cmd, o, subject) })
		},
	}
	f.commonFlags(cmd)
	return cmd
}

// clear shows what the end of an override does, asks if that is much, and ends it.
func (f *setter) clear(cmd *cobra.Command, i *ops.Ops, subject falldue.Subject) error {
	list, err := i.Overrides(cmd.Context())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(o ops.Override) bool { return o.String() == subject.String() })
	if at < 0 {
		return notFound("no override is set for %s; \"falldue policy show\" lists the overrides", subject)
	}
	p, err := f.read(cmd, i, list[at].Key)
	if err != nil {
		return err
	}
	effect, err := p.ClearImpact(list[at].Subject, f.horizon)
	if err != nil {
		return mistake(err)
	}
	report := setReport{ops.Override{Subject: subject, Cleared: true, Note: f.note}, effect, f.dry, p.Releases(subject.Kind)}
	if !f.dry {
		if effect.Drastic(f.askAbove) {
			if err := confirm(cmd, report.warning(), f.yes); err != nil {
				return err
			}
		}
		if err := i.ClearPolicy(cmd.Context(), subject, f.note); err != nil {
			return err
		}
	}
	return report.print(cmd, f.asJSON)
}

func policyShowCommand() *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [KEY...]",
		Short: "Show overrides, or per-task policies by their keys",
		Long: "Show the overrides in effect, the most specific subject first. The first\n" +
			"override that matches a task applies to the task. The column \"workers\" counts the live\n" +
			"workers that apply the override. Status 4 means that a live worker cannot apply an override; a line names the\n" +
			"override and the reason. With keys from \"falldue ls --json\", show the per-task\n" +
			"policies with these keys.",
		RunE: func(cmd *cobra.Command, keys []string) error {
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				if len(keys) > 0 {
					return printPolicies(cmd, o, keys, asJSON)
				}
				list, err := o.Overrides(cmd.Context())
				if err != nil {
					return err
				}
				workers, readErr := o.Workers(cmd.Context())
				if err := printInForce(cmd, list, workers, asJSON); err != nil {
					return err
				}
				if readErr != nil {
					return fmt.Errorf("cannot check whether workers apply the overrides: %w", readErr)
				}
				return printRefused(cmd, ops.RefusedOverrides(workers), asJSON)
			})
		},
	}
	p.flags(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object for each subject, and one with the fields refused, workers and error for each policy that workers cannot apply")
	return cmd
}

// printInForce prints the policies that are set, and how many workers apply them.
func printInForce(cmd *cobra.Command, list []ops.Override, workers []ops.Worker, asJSON bool) error {
	if len(list) == 0 && !asJSON {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no override is set: the program's policies are in effect")
		return err
	}
	workers = slices.DeleteFunc(workers, func(w ops.Worker) bool { return !w.Live() })
	applying := func(o ops.Override) (n int) {
		for _, w := range workers {
			if o.AppliedBy(w) {
				n++
			}
		}
		return n
	}
	if asJSON {
		return printEach(cmd, list, func(o ops.Override) any {
			return struct {
				overrideJSON
				Applied int `json:"applied_by_workers"`
				Workers int `json:"live_workers"`
			}{overrideObject(o), applying(o), len(workers)}
		})
	}
	rows := make([][]string, len(list))
	for i, o := range list {
		rows[i] = append(overrideRow(o), fmt.Sprintf("%d of %d", applying(o), len(workers)))
	}
	return screenOf(cmd).table(append(slices.Clone(overrideColumns), column{name: "workers"}), rows)
}

// printRefused prints the policies that live workers cannot apply. If there are any, it returns
// the finding that ends the command with status 4.
func printRefused(cmd *cobra.Command, refused []ops.RefusedOverride, asJSON bool) (err error) {
	if len(refused) == 0 {
		return nil
	}
	if asJSON {
		err = printEach(cmd, refused, func(r ops.RefusedOverride) any { return refusedObject(r.Subject, r.Workers, r.Error) })
	} else {
		err = printRefusals(cmd, refused)
	}
	if err != nil {
		return err
	}
	return finding(exitAttention)
}

// refusedObject returns as JSON what workers cannot apply.
func refusedObject(subject string, workers []string, why string) any {
	return struct {
		Refused string   `json:"refused"`
		Workers []string `json:"workers"`
		Error   string   `json:"error"`
	}{subject, workers, why}
}

// printRefusals prints in words what workers cannot apply.
func printRefusals[R fmt.Stringer](cmd *cobra.Command, refused []R) error {
	var b strings.Builder
	for _, r := range refused {
		fmt.Fprintf(&b, "\n%s\n", plain(r.String()))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// printPolicies prints the policies that tasks have of their own under keys.
func printPolicies(cmd *cobra.Command, o *ops.Ops, keys []string, asJSON bool) error {
	for _, key := range keys {
		policy, err := o.PolicyByKey(cmd.Context(), key)
		if errors.Is(err, falldue.ErrNotFound) {
			return notFound("no per-task policy has the key %q; \"falldue policy list --own\" lists the keys, and \"falldue policy show\" without a key the overrides of kinds and queues", key)
		}
		if err != nil {
			return err
		}
		if asJSON {
			err = jsonLines(cmd.OutOrStdout()).Encode(struct {
				Key    string `json:"key"`
				Policy string `json:"policy"`
			}{key, policy.String()})
		} else {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", key, policy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func policyHistoryCommand() *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [SUBJECT]",
		Short: "Show who set and cleared overrides, when and why",
		Long:  "Show who set and cleared overrides, when and why.\n\n" + subjectHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var subject falldue.Subject
			if len(args) == 1 {
				var err error
				if subject, err = falldue.ParseSubject(args[0]); err != nil {
					return err
				}
			}
			return p.queue(cmd.Context(), func(q *falldue.Queue) error {
				list, err := ops.New(q).OverrideHistory(cmd.Context())
				if err != nil {
					return err
				}
				return printOverrides(cmd, slices.DeleteFunc(list, func(o ops.Override) bool { return len(args) == 1 && o.Subject != subject }), asJSON)
			})
		},
	}
	p.flags(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object for each change")
	return cmd
}

func printOverrides(cmd *cobra.Command, list []ops.Override, asJSON bool) error {
	if asJSON {
		return printEach(cmd, list, func(o ops.Override) any { return overrideObject(o) })
	}
	rows := make([][]string, len(list))
	for i, o := range list {
		rows[i] = overrideRow(o)
	}
	return screenOf(cmd).table(overrideColumns, rows)
}

var overrideColumns = []column{
	{name: "set (UTC)"}, {name: "subject", least: 12}, {name: "policy", least: 16}, {name: "until (UTC)"}, {name: "who", least: 6}, {name: "why", least: 12, prose: true},
}

// overrideRow returns the cells of overrideColumns.
func overrideRow(o ops.Override) []string {
	until := ""
	if !o.Until.IsZero() {
		until = o.Until.Format(time.DateTime)
	}
	return []string{o.At.Format(time.DateTime), o.String(), overrideText(o), until, o.Who, o.Why}
}

// overrideText describes an override in a cell.
func overrideText(o ops.Override) string {
	if o.Cleared {
		return "cleared"
	}
	text := ops.OverrideName(o.Formula) + ops.StepText(o)
	if o.IncludeOwn {
		text += ", including tasks with a per-task policy"
	}
	return text
}

// overrideJSON is an override as JSON.
type overrideJSON struct {
	Subject    string     `json:"subject"`
	Policy     string     `json:"policy,omitempty"`
	Cleared    bool       `json:"cleared,omitempty"`
	Steps      []stepJSON `json:"steps,omitempty"`
	IncludeOwn bool       `json:"include_own,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	Who        string     `json:"who,omitempty"`
	Why        string     `json:"why,omitempty"`
}

type stepJSON struct {
	After  float64 `json:"after_seconds"`
	Policy string  `json:"policy"`
}

func overrideObject(o ops.Override) overrideJSON {
	object := overrideJSON{
		Subject: o.String(), Policy: o.Formula.String(), Cleared: o.Cleared, IncludeOwn: o.IncludeOwn,
		At: set(o.At), Until: set(o.Until), Who: o.Who, Why: o.Why,
	}
	if len(o.Steps) > 1 {
		for _, s := range o.Steps {
			object.Steps = append(object.Steps, stepJSON{s.After.Seconds(), s.Formula.String()})
		}
	}
	return object
}
