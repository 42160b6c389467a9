package main

import (
	"fmt"
	"math"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"io"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

const untilUsage = "09:00 (local time), 2h or 2d (from now), or 2026-12-11T14:02:00Z (default never)"

// setter has the flags of commands that change policies.
type setter struct {
	profileFlags
	policies policyFlag
	until    string
	note     falldue.Note
	own      bool
	askAbove int64
	dry, yes bool
	asJSON   bool
}

func (f *setter) flags(cmd *cobra.Command, until bool) {
	f.commonFlags(cmd)
	if until {
		cmd.Flags().StringVar(&f.until, "until", "", "end of the override: "+untilUsage)
	}
	cmd.Flags().BoolVar(&f.own, "include-own", false, "include tasks with a per-task policy; the name original then stands for that policy")
}

// commonFlags adds the flags of commands that set policies and of those that clear them.
func (f *setter) commonFlags(cmd *cobra.Command) {
	f.profileFlags.flags(cmd)
	f.policies.flag(cmd)
	f.applyFlags(cmd)
	jsonFlag(cmd, &f.asJSON, "print one JSON object: the change and its effect")
	cmd.ValidArgsFunction = f.kindArgument()
}

// applyFlags adds the flags of all commands that set policies.
func (f *setter) applyFlags(cmd *cobra.Command) {
	whoFlags(cmd, &f.note)
	askAboveFlag(cmd, &f.askAbove, "ask for confirmation if more than this many tasks would be dead or due immediately")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show the effect, and change nothing")
	yesFlag(cmd, &f.yes)
}

func askAboveFlag(cmd *cobra.Command, most *int64, usage string) {
	numberVar(cmd.Flags(), most, "ask-above", 100, 0, math.MaxInt64, usage)
}

// whoFlags adds the flags that say who changes something and why.
func whoFlags(cmd *cobra.Command, n *falldue.Note) {
	name := os.Getenv("USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	textVar(cmd.Flags(), &n.Who, "who", name, 255, "your name, shown in lists and in the history")
	textVar(cmd.Flags(), &n.Why, "why", "", storable.MaxText, "reason, shown in lists and in the history")
}

func policySetCommand() *cobra.Command {
	var f setter
	cmd := &cobra.Command{
		Use:   "set SUBJECT OVERRIDE",
		Short: "Override a retry policy on running workers",
		Long: "Override a retry policy on running workers, within two seconds, for waiting and for\n" +
			"running tasks. No row of a task is written. The override ends at --until, or when you\n" +
			"run \"policy clear\" or another \"policy set\" for the same SUBJECT. A deploy does not\n" +
			"end it.\n\n" +
			"An OVERRIDE has clauses of a policy; clauses you omit are unchanged. In it, original\n" +
			"stands for the policy in the program: \"4 * original\", \"max(original, 1h)\", \"5m; jitter\n" +
			"1m\", \"attempts 50\", \"elapsed 2d\". The command asks for confirmation if more than\n" +
			"--ask-above waiting tasks would be dead or due immediately, or if their policy is not\n" +
			"known.\n\n" + subjectHelp + "\n" + formulaHelp + "\n" + policyFlagHelp,
		Example: "  falldue policy set invoice.send '4 * original' --until 2h --why 'the provider is slow'",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			override, err := backoff.ParseOverride(args[1])
			if err != nil {
				return mistake(err)
			}
			return f.set(cmd, args[0], func(*ops.Profile, ops.Override) ([]ops.OverrideStep, error) {
				return []ops.OverrideStep{{Formula: override}}, nil
			})
		},
	}
	f.flags(cmd, true)
	cmd.ValidArgsFunction = f.kindAndPolicy()
	return cmd
}

// set sets an override whose steps depend on what waits now.
func (f *setter) set(cmd *cobra.Command, subject string, steps func(*ops.Profile, ops.Override) ([]ops.OverrideStep, error)) error {
	o := ops.Override{IncludeOwn: f.own, Note: f.note}
	var err error
	if o.Subject, err = falldue.ParseSubject(subject); err != nil {
		return err
	}
	return f.ops(cmd.Context(), f.policies, func(i *ops.Ops, _ *falldue.Queue) error {
		p, err := f.read(cmd, i, o.Key)
		if err != nil {
			return err
		}
		if f.until != "" {
			if o.Until, err = ops.ParseUntil(f.until, p.At, time.Now()); err != nil {
				return mistake(fmt.Errorf("%s: %w", untilName(cmd), err))
			}
		}
		_, given := f.policies.kinds[o.Kind]
		if !given && !f.dry {
			if err := confirmSubject(cmd, i, o.Subject, f.yes); err != nil {
				return err
			}
		}
		if o.Steps, err = steps(p, o); err != nil {
			return mistake(err)
		}
		o.Formula = o.Steps[0].Formula
		if err := f.apply(cmd, i, p, o, ""); err != nil || given || !f.dry || f.asJSON {
			return err
		}
		doubt, err := doubtSubject(cmd, i, o.Subject)
		if err != nil || doubt == "" {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), doubt)
		return err
	})
}

// apply shows what an override does, asks if that is much, and sets it. It asks what ask says
// in any case, if that is not "".
func (f *setter) apply(cmd *cobra.Command, i *ops.Ops, p *ops.Profile, o ops.Override, ask string) error {
	effect, err := p.Impact(o, f.horizon)
	if err != nil {
		return mistake(err)
	}
	report := setReport{o, effect, f.dry, p.Releases(o.Kind)}
	if !f.dry {
		if question := report.question(ask, f.askAbove); question != "" {
			if err := confirm(cmd, question, f.yes); err != nil {
				return err
			}
		}
		opts := ops.OverrideOptions{IncludeOwn: o.IncludeOwn, Steps: o.Steps[1:], Until: o.Until, Note: o.Note}
		if err := i.SetPolicy(cmd.Context(), o.Subject, o.Formula, opts); err != nil {
			return endError(cmd.Context(), i, untilName(cmd), o.Until, err)
		}
	}
	return report.print(cmd, f.asJSON)
}

// untilName returns the name of a command's end of an override: a flag, or an argument of hold.
func untilName(cmd *cobra.Command) string {
	if cmd.Flags().Lookup("until") == nil {
		return "until"
	}
	return "--until"
}

// setReport is what a command has set or cleared, or would.
type setReport struct {
	ops.Override
	effect ops.Effect
	dry    bool
	// releases has the kinds for which workers have several policies.
	releases []ops.KindReleases
}

func (r setReport) print(cmd *cobra.Command, asJSON bool) error {
	if asJSON {
		return jsonLines(cmd.OutOrStdout()).Encode(r.object())
	}
	_, err := io.WriteString(cmd.OutOrStdout(), r.text())
	return err
}

// question is what to ask before an override is set, or "". It begins with the part that is
// asked in any case.
func (r setReport) question(ask string, above int64) string {
	switch drastic := r.effect.Drastic(above); {
	case drastic && ask != "":
		return "this " + ask + ", and " + strings.TrimPrefix(r.warning(), "this ")
	case drastic:
		return r.warning()
	case ask != "":
		return "this " + ask
	}
	return ""
}

// warning says what an override does that a person should agree to.
func (r setReport) warning() string {
	due := "makes %s due immediately"
	if n := len(r.Steps); n > 1 {
		due = fmt.Sprintf("makes %%s due together, in the busiest of %d steps", n)
	}
	var parts []string
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.effect.AtOnce, due}, {r.effect.Exhausted, "leaves %s with no attempt left, dead when due"},
		{r.effect.Unknown, "may make %s under an unknown policy due immediately (set the policy with --policy)"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf(part.text, counted(int(part.n), "waiting task")))
		}
	}
	if n := r.effect.UnknownExhausted; n > 0 {
		parts = append(parts, fmt.Sprintf("leaves %s of these with no attempt left", grouped(n)))
	}
	return "this " + strings.Join(parts, ", and ")
}

func (r setReport) text() string {
	var b strings.Builder
	if r.dry {
		b.WriteString("would be ")
	}
	if r.Cleared {
		fmt.Fprintf(&b, "cleared for %s\n", r.Subject)
	} else {
		fmt.Fprintf(&b, "set for %s: %s", r.Subject, ops.OverrideName(r.Steps[0].Formula))
		if n := len(r.Steps); n > 1 {
			fmt.Fprintf(&b, ", and %d more steps until %s after %s", n-1, r.Steps[n-1].Formula, words.Span(r.Steps[n-1].After))
		}
		fmt.Fprintf(&b, ", %s\n", untilText(r.Until))
	}
	immediately, sooner := "become due immediately", "become due sooner"
	if n := len(r.Steps); n > 1 { // a task may be among both
		immediately, sooner = fmt.Sprintf("become due together, in the busiest of the %d steps", n), "become due sooner, spread over the steps"
	}
	lines := []struct {
		n    int64
		text string
	}{
		{r.effect.Tasks, "tasks wait"}, {r.effect.AtOnce, immediately}, {r.effect.Sooner, sooner}, {r.effect.Later, "become due later"},
		{r.effect.Exhausted, "have no attempt left, and die when they fall due"}, {r.effect.Unknown, "more wait under an unknown policy; set it with --policy"},
		{r.effect.UnknownExhausted, "of these have no attempt left"}, {r.effect.Own, "more keep their per-task policy"},
		{r.effect.AtEnd, "become due when the override ends at " + timeText(r.Until)},
	}
	for i, line := range lines {
		if i == 0 || line.n > 0 {
			fmt.Fprintf(&b, "%12s  %s\n", grouped(line.n), line.text)
		}
	}
	if !r.Cleared {
		b.WriteString(r.ownText() + "\n")
	}
	return b.String() + releasesText(r.releases)
}

// ownText says whether tasks with a per-task policy follow.
func (r setReport) ownText() string {
	switch {
	case r.Policy != "":
		return "tasks with that per-task policy follow the override"
	case r.IncludeOwn:
		return "tasks with a per-task policy follow the override, too"
	}
	return "tasks with a per-task policy keep it"
}

func untilText(until time.Time) string {
	if until.IsZero() {
		return "until it is cleared"
	}
	return "until " + timeText(until)
}

// timeText formats a time as people here have it, and in UTC.
func timeText(t time.Time) string { return words.Here(t, time.Local) }

func (r setReport) object() any {
	return struct {
		overrideJSON
		Dry       bool          `json:"dry_run,omitempty"`
		Tasks     int64         `json:"tasks"`
		AtOnce    int64         `json:"at_once"`
		Sooner    int64         `json:"sooner"`
		Later     int64         `json:"later"`
		Exhausted int64         `json:"exhausted"`
		Unknown   int64         `json:"unknown"`
		Own       int64         `json:"own"`
		OwnFollow bool          `json:"own_follow"`
		AtEnd     int64         `json:"at_end"`
		Releases  []releaseJSON `json:"kind_policies,omitempty"`
	}{overrideObject(r.Override), r.dry, r.effect.Tasks, r.effect.AtOnce, r.effect.Sooner, r.effect.Later, r.effect.Exhausted + r.effect.UnknownExhausted, r.effect.Unknown, r.effect.Own, r.Policy != "" || r.IncludeOwn, r.effect.AtEnd, releaseObjects(r.releases)}
}
