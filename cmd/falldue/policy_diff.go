package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func policyDiffCommand() *cobra.Command {
	var d differ
	cmd := &cobra.Command{
		Use:   "diff KIND FORMULA...",
		Short: "Compare the effect of policies on waiting tasks",
		Long: "Compare policies on the waiting tasks of a kind: how many tasks would become due\n" +
			"immediately, sooner or later, how many would have no attempt left, and the busiest\n" +
			"minute before and after. Each policy replaces the override of the kind or, without\n" +
			"one, the program's policy. The current policy comes from live workers, or from --from;\n" +
			"overrides are included until they end. Tasks with a per-task policy keep it, and so do\n" +
			"tasks with a more specific override.\n\n" +
			"Status 4 means a retry storm: a minute with twice as many tasks as the busiest minute\n" +
			"under the current policy, and at least 100 more. --ramp shows steps from the current policy to the new\n" +
			"one that keep each minute below a number of tasks. --apply sets these steps as the\n" +
			"override of the kind; the last step stays until the time of --until, or until you run\n" +
			"\"policy clear\".\n\n" + profileHelp + "\n" + formulaHelp,
		Example: `  falldue policy diff invoice.send 5m 10m '1m * n'
  falldue policy diff invoice.send 5m --ramp 600`,
		Args: cobra.MinimumNArgs(2),
		RunE: d.run,
	}
	d.flags(cmd)
	return cmd
}

// differ compares policies with what holds.
type differ struct {
	setter
	from    string
	rate    int64 // how many tasks may fall due in a minute of a ramp
	applies bool
	picture pictureFlags
}

func (d *differ) flags(cmd *cobra.Command) {
	d.profileFlags.flags(cmd)
	d.horizonFlag(cmd)
	d.picture.flags(cmd)
	cmd.ValidArgsFunction = d.kindAndPolicy()
	cmd.Flags().StringVar(&d.from, "from", "", "current policy of the kind (default the policy of most live workers)")
	numberVar(cmd.Flags(), &d.rate, "ramp", 0, 1, math.MaxInt64, "show steps in which at most this many tasks fall due per minute")
	cmd.Flags().BoolVar(&d.applies, "apply", false, "set the steps of --ramp on running workers")
	cmd.Flags().StringVar(&d.until, "until", "", "with --apply: end of the override: "+untilUsage)
	d.applyFlags(cmd)
	complete(cmd, "from", presetNames()...)
	jsonFlag(cmd, &d.asJSON, "print one JSON object for each policy, with both loads and the steps, and one for what --apply sets")
}

func (d *differ) run(cmd *cobra.Command, args []string) error {
	kind := args[0]
	d.policies = policyFlag{kinds: map[string]backoff.Policy{}}
	if d.from != "" {
		code, err := backoff.Parse(d.from)
		if err != nil {
			return mistake(fmt.Errorf("--from: %w", err))
		}
		d.policies.kinds[kind] = code
	}
	list, err := d.candidates(cmd, args[1:])
	if err != nil {
		return mistake(err)
	}
	return d.ops(cmd.Context(), d.policies, func(o *ops.Ops, _ *falldue.Queue) error {
		policy, err := policyNow(cmd.Context(), o, kind)
		if err != nil {
			return err
		}
		holds := policy.String()
		if code, given := d.policies.kinds[kind]; given && code.String() == holds {
			holds = d.from
		}
		p, err := d.read(cmd, o, "")
		if err != nil {
			return err
		}
		herd := false
		for k := range list {
			c := &list[k]
			c.holds, c.rate, c.releases = holds, d.rate, p.Releases(kind)
			if c.Effect, err = p.Diff(kind, c.policy, d.horizon); err != nil {
				return mistake(err)
			}
			if herd = herd || c.Herd; d.rate > 0 {
				if c.steps, err = p.Ramp(kind, c.policy, d.rate); err != nil {
					return err
				}
			}
		}
		if d.picture.set() {
			if err := d.saveDiff(policy, list); err != nil {
				return err
			}
		}
		switch {
		case d.asJSON:
			err = printEach(cmd, list, candidate.object)
		case len(list) == 1:
			err = list[0].print(screenOf(cmd))
		default:
			err = printCandidates(screenOf(cmd), list)
		}
		if err == nil && d.applies {
			return d.setRamp(cmd, o, p, list[0])
		}
		if err == nil && herd {
			return finding(exitAttention)
		}
		return err
	})
}

// candidates parses the policies to compare, and checks the flags that go with them.
func (d *differ) candidates(cmd *cobra.Command, texts []string) (list []candidate, err error) {
	for _, text := range texts {
		policy, err := backoff.Parse(text)
		if err != nil {
			return nil, err
		}
		list = append(list, candidate{text: text, policy: policy})
	}
	ramp := cmd.Flags().Changed("ramp")
	switch {
	case ramp && len(list) > 1:
		return nil, fmt.Errorf("--ramp takes one policy, and %d are given", len(list))
	case d.applies && !ramp:
		return nil, errors.New("--apply needs --ramp; to set a policy without steps, use \"policy set\"")
	case !d.applies && (d.until != "" || d.dry):
		return nil, errors.New("--until and --dry-run need --apply")
	}
	return list, nil
}

// setRamp sets the steps of a ramp, as "policy set" does.
func (d *differ) setRamp(cmd *cobra.Command, i *ops.Ops, p *ops.Profile, c candidate) error {
	steps, err := ops.Overrides(c.steps)
	if err != nil {
		return err
	}
	o := ops.Override{Subject: falldue.Subject{Kind: c.Kind}, Formula: steps[0].Formula, Steps: steps, Note: d.note}
	if d.until != "" {
		if o.Until, err = ops.ParseUntil(d.until, p.At, time.Now()); err != nil {
			return mistake(fmt.Errorf("--until: %w", err))
		}
	}
	if !d.asJSON {
		if _, err := fmt.Fprintln(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	ask := fmt.Sprintf("changes the policy of %s in %s", c.Kind, counted(len(steps), "step"))
	if r := c.Replaces; r != nil {
		ask += ", and replaces " + setText(*r)
	}
	return d.apply(cmd, i, p, o, ask)
}

// policyNow returns the policy that holds for a kind now, as far as it is the same in all
// queues.
func policyNow(ctx context.Context, o *ops.Ops, kind string) (backoff.Policy, error) {
	policies, err := o.Policies(ctx)
	if err != nil {
		return backoff.Policy{}, err
	}
	policy, known := policies.Of(falldue.TaskInfo{Kind: kind})
	if !known {
		return backoff.Policy{}, mistake(fmt.Errorf("no live worker handles kind %s; set the kind's current policy with --from", kind))
	}
	return policy, nil
}

// setText names an override that is set.
func setText(o ops.Override) string {
	what := fmt.Sprintf("the policy %q%s", o.Formula, ops.StepText(o))
	if ops.IsHold(o.Formula) {
		what = "the hold"
	}
	text := fmt.Sprintf("%s, which is set for %s %s", what, o.Subject, untilText(o.Until))
	if o.Who != "" {
		text += " by " + o.Who
	}
	return text
}

// candidate is a policy that may come to hold, with its effect.
type candidate struct {
	text   string
	policy backoff.Policy
	ops.Effect
	holds string // now
	rate  int64  // how many tasks may fall due in a minute of a ramp
	steps []ops.Step
	// releases has the kind if workers have several policies for it.
	releases []ops.KindReleases
}

func (c candidate) print(s screen) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s tasks of %s wait under its policy\n", grouped(c.Tasks), c.Kind)
	for _, line := range []struct {
		n    int64
		text string
	}{
		{c.AtOnce, "would be due immediately"}, {c.Sooner, "would be due sooner"}, {c.Later, "would be due later"},
		{c.Exhausted, "would have no attempt left, and be dead when they fall due"},
	} {
		fmt.Fprintf(&b, "%12s  %s\n", grouped(line.n), line.text)
	}
	b.WriteString(c.others())
	b.WriteByte('\n')
	if _, err := io.WriteString(s, b.String()); err != nil {
		return err
	}
	row := func(name, policy string, l ops.Load) []string {
		return []string{name, policy, grouped(l.Due), peakText(l)}
	}
	if err := s.table([]column{{name: ""}, {name: "policy", least: 12}, {name: "due now", right: true}, {name: "busiest minute"}},
		[][]string{row("before", c.holds, c.Before), row("after", c.text, c.After)}); err != nil {
		return err
	}
	b.Reset()
	if c.After.Within(len(c.After.Minutes)) > 0 {
		fmt.Fprintf(&b, "\n%s\n", minutesChart(c.After.Minutes, "after: tasks that fall due in each "))
	}
	if c.Herd {
		fmt.Fprintf(&b, "\nwarning: this causes a retry storm: %s tasks would fall due in one minute, compared with %s in the busiest minute now", grouped(c.After.Peak), grouped(c.Before.Peak))
		if c.steps == nil {
			b.WriteString("; --ramp shows steps without one")
		}
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(s, b.String()); err != nil || c.steps == nil {
		return err
	}
	return c.printSteps(s)
}

// others says what is not compared, and what is set now.
func (c candidate) others() string {
	var b strings.Builder
	if c.Own > 0 {
		fmt.Fprintf(&b, "%12s  more keep their per-task policy\n", grouped(c.Own))
	}
	if c.Kept > 0 {
		fmt.Fprintf(&b, "%12s  more keep a more specific override\n", grouped(c.Kept))
	}
	if r := c.Replaces; r != nil {
		fmt.Fprintf(&b, "this would replace %s\n", setText(*r))
	}
	b.WriteString(releasesText(c.releases))
	return b.String()
}

// printCandidates prints several policies side by side.
func printCandidates(s screen, list []candidate) error {
	first := list[0]
	if _, err := fmt.Fprintf(s, "%s tasks of %s wait under its policy\n%s\n", grouped(first.Tasks), first.Kind, first.others()); err != nil {
		return err
	}
	rows := [][]string{{"before", first.holds, grouped(first.Before.Due), "", "", "", "", peakText(first.Before), ""}}
	for _, c := range list {
		herd := ""
		if c.Herd {
			herd = "retry storm"
		}
		rows = append(rows, []string{"after", c.text, grouped(c.After.Due), grouped(c.AtOnce), grouped(c.Sooner), grouped(c.Later), grouped(c.Exhausted), peakText(c.After), herd})
	}
	return s.table([]column{
		{name: ""}, {name: "policy", least: 12}, {name: "due now", right: true}, {name: "newly due", right: true}, {name: "sooner", right: true},
		{name: "later", right: true}, {name: "no attempt left", right: true}, {name: "busiest minute"}, {name: ""},
	}, rows)
}

// shownSteps is the greatest number of steps that are printed for people.
const shownSteps = 12

func (c candidate) printSteps(s screen) error {
	var rows [][]string
	each := (len(c.steps) + shownSteps - 1) / shownSteps
	for i, step := range c.steps {
		if i%each == 0 || i == len(c.steps)-1 {
			rows = append(rows, []string{words.Span(step.After), grouped(step.Due), step.Policy.String()})
		}
	}
	if _, err := fmt.Fprintf(s, "\n%d steps", len(c.steps)); err != nil {
		return err
	}
	if each > 1 {
		if _, err := fmt.Fprintf(s, "; some are shown here, and --json prints all"); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	if err := c.warnOfCrowds(s); err != nil {
		return err
	}
	return s.table([]column{{name: "after", right: true}, {name: "due a minute", right: true}, {name: "policy", least: 20}}, rows)
}

// warnOfCrowds names the busiest step if more tasks fall due in it than --ramp says.
func (c candidate) warnOfCrowds(s screen) error {
	if len(c.steps) == 0 {
		return nil
	}
	busiest := slices.MaxFunc(c.steps, func(a, b ops.Step) int { return cmp.Compare(a.Due, b.Due) })
	if busiest.Due <= c.rate {
		return nil
	}
	_, err := fmt.Fprintf(s, "warning: %s tasks fall due in a minute after %s, more than %s: as many fall due without a ramp, under the policy in effect at that time; --ramp %[4]d is lower\n",
		grouped(busiest.Due), words.Span(busiest.After), grouped(c.rate), c.rate)
	return err
}

func (c candidate) object() any {
	type step struct {
		After  float64 `json:"after_seconds"`
		Share  float64 `json:"share"`
		Policy string  `json:"policy"`
		Due    int64   `json:"due"`
	}
	o := struct {
		Kind      string        `json:"kind"`
		From      string        `json:"from"`
		To        string        `json:"to"`
		Tasks     int64         `json:"tasks"`
		Own       int64         `json:"own"`
		AtOnce    int64         `json:"at_once"`
		Sooner    int64         `json:"sooner"`
		Later     int64         `json:"later"`
		Exhausted int64         `json:"exhausted"`
		Unknown   int64         `json:"unknown,omitempty"`
		Kept      int64         `json:"kept,omitempty"`
		Herd      bool          `json:"herd"`
		Before    loadJSON      `json:"before"`
		After     loadJSON      `json:"after"`
		Replaces  *overrideJSON `json:"replaces,omitempty"`
		Releases  []releaseJSON `json:"kind_policies,omitempty"`
		Steps     []step        `json:"steps,omitempty"`
	}{c.Kind, c.holds, c.text, c.Tasks, c.Own, c.AtOnce, c.Sooner, c.Later, c.Exhausted, c.Unknown, c.Kept, c.Herd, loadObject(c.Before), loadObject(c.After), nil, releaseObjects(c.releases), nil}
	if c.Replaces != nil {
		replaced := overrideObject(*c.Replaces)
		o.Replaces = &replaced
	}
	for _, s := range c.steps {
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
