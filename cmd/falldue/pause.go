package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

func pauseCommand() *cobra.Command {
	var p place
	var until string
	var note falldue.Note
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "pause [SUBJECT]",
		Short: "Pause a queue, kind, key or per-task policy; list pauses",
		Long: "Pause the tasks of a SUBJECT. Workers stop claiming them within two seconds. The pause\n" +
			"ends at --until, or when you run \"falldue resume\". Running handlers continue, and\n" +
			"new tasks can be enqueued. A second pause of a SUBJECT replaces the first. Without a\n" +
			"SUBJECT, list the pauses in effect. Status 4 means that a worker cannot apply a pause\n" +
			"because a newer release set it.\n\n" + subjectHelp,
		Example: "  falldue pause charge --until 2h --why 'the bank is down'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, q *falldue.Queue) error {
				if len(args) == 0 {
					return listPauses(cmd, o, asJSON)
				}
				pause := ops.Pause{Note: note}
				var err error
				if pause.Subject, err = falldue.ParseSubject(args[0]); err != nil {
					return err
				}
				if until != "" {
					now, err := o.Now(cmd.Context())
					if err != nil {
						return err
					}
					if pause.Until, err = ops.ParseUntil(until, now, time.Now()); err != nil {
						return mistake(fmt.Errorf("--until: %w", err))
					}
				}
				if err := confirmSubject(cmd, o, pause.Subject, yes); err != nil {
					return err
				}
				if err := q.Pause(cmd.Context(), pause.Subject, falldue.PauseOptions{Until: pause.Until, Note: note}); err != nil {
					return endError(cmd.Context(), o, "--until", pause.Until, err)
				}
				if asJSON {
					return jsonLines(cmd.OutOrStdout()).Encode(pauseObject(pause))
				}
				end := "until it is resumed"
				if !pause.Until.IsZero() {
					end = untilText(pause.Until)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "paused %s, %s\n", pause.Subject, end)
				return err
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&until, "until", "", "end of the pause: "+untilUsage)
	whoFlags(cmd, &note)
	yesFlag(cmd, &yes)
	jsonFlag(cmd, &asJSON, "print one JSON object per pause, and one with the fields refused, workers and error for each pause that workers cannot apply")
	cmd.ValidArgsFunction = p.kindArgument()
	return cmd
}

// endError returns the error of a change. If the change's end has passed, for example during a confirmation, the error
// names the flag or the argument of the end: the library's error names a field of Go.
func endError(ctx context.Context, o *ops.Ops, name string, until time.Time, err error) error {
	if until.IsZero() || !errors.Is(err, falldue.ErrInvalid) {
		return err
	}
	if now, failed := o.Now(ctx); failed != nil || until.After(now) {
		return err
	}
	return mistake(fmt.Errorf("%s: the time %s has passed in the meantime; set a later time", name, until.UTC().Format(time.DateTime+" UTC")))
}

func resumeCommand() *cobra.Command {
	var f profileFlags
	var policies policyFlag
	var note falldue.Note
	var askAbove int64
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "resume SUBJECT",
		Short: "End a pause",
		Long: "End the pause of a SUBJECT. Workers claim its tasks again within two seconds, unless\n" +
			"another pause includes them. Tasks that fell due in the meantime are due immediately:\n" +
			"the command counts them first, and asks if there are more than --ask-above. To release\n" +
			"them gradually, run \"falldue policy ramp\" first.\n\n" + subjectHelp + "\n" + policyFlagHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := falldue.ParseSubject(args[0])
			if err != nil {
				return err
			}
			return f.ops(cmd.Context(), policies, func(o *ops.Ops, q *falldue.Queue) error {
				pauses, err := o.Pauses(cmd.Context())
				if err != nil {
					return err
				}
				at := slices.IndexFunc(pauses, func(p ops.Pause) bool { return p.String() == subject.String() })
				if at < 0 {
					return notFound("%s is not paused; \"falldue pause\" lists the pauses", subject)
				}
				p, err := f.read(cmd, o, pauses[at].Key)
				if err != nil {
					return err
				}
				woken, err := p.ResumeImpact(pauses[at].Subject, pauses)
				if err != nil {
					return err
				}
				if woken.Due+woken.Unknown > askAbove {
					if err := confirm(cmd, wokenWarning(woken), yes); err != nil {
						return err
					}
				}
				if err := q.Resume(cmd.Context(), subject, note); err != nil {
					return err
				}
				if asJSON {
					return jsonLines(cmd.OutOrStdout()).Encode(struct {
						Subject string `json:"subject"`
						Change  string `json:"change"`
						Due     int64  `json:"due"`
						Unknown int64  `json:"unknown"`
					}{subject.String(), "resumed", woken.Due, woken.Unknown})
				}
				text := fmt.Sprintf("resumed %s\n%12s  tasks are due now\n", subject, grouped(woken.Due))
				if woken.Unknown > 0 {
					text += fmt.Sprintf("%12s  more wait under an unknown policy; set it with --policy\n", grouped(woken.Unknown))
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			})
		},
	}
	f.flags(cmd)
	policies.flag(cmd)
	whoFlags(cmd, &note)
	askAboveFlag(cmd, &askAbove, "ask for confirmation if more than this many tasks would be due immediately")
	yesFlag(cmd, &yes)
	jsonFlag(cmd, &asJSON, "print one JSON object: subject, change, and how many tasks are due or might be")
	cmd.ValidArgsFunction = f.kindArgument()
	return cmd
}

// wokenWarning says what the end of a pause lets run.
func wokenWarning(w ops.Woken) string {
	r := setReport{effect: ops.Effect{Diff: ops.Diff{AtOnce: w.Due}, Unknown: w.Unknown}}
	return r.warning()
}

// kindArgument returns a completion of the first argument by the names of kinds.
func (p *place) kindArgument() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return p.namesOf(queueKinds)(cmd, args, toComplete)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// kindAndPolicy returns a completion of the first argument by the names of kinds, and of
// others with presets' names.
func (p *place) kindAndPolicy() cobra.CompletionFunc {
	kinds, presets := p.kindArgument(), presetArguments(1, 0)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return kinds(cmd, args, toComplete)
		}
		return presets(cmd, args, toComplete)
	}
}

// listPauses prints the pauses that hold, and those that live workers cannot apply. If there are
// any of these, it returns the finding that ends the command with status 4.
func listPauses(cmd *cobra.Command, o *ops.Ops, asJSON bool) error {
	list, err := o.Pauses(cmd.Context())
	if err != nil {
		return err
	}
	if err := printPauses(cmd, list, asJSON); err != nil {
		return err
	}
	workers, err := o.Workers(cmd.Context())
	if err != nil {
		return fmt.Errorf("cannot check whether workers apply the pauses: %w", err)
	}
	refused := ops.RefusedPauses(workers)
	if len(refused) == 0 {
		return nil
	}
	if asJSON {
		err = printEach(cmd, refused, func(p ops.RefusedPause) any { return refusedObject(p.Subject, p.Workers, p.Error) })
	} else {
		err = printRefusals(cmd, refused)
	}
	if err != nil {
		return err
	}
	return finding(exitAttention)
}

// printPauses prints the pauses that hold.
func printPauses(cmd *cobra.Command, list []ops.Pause, asJSON bool) error {
	if asJSON {
		return printEach(cmd, list, pauseObject)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing is paused")
		return err
	}
	rows := make([][]string, len(list))
	for i, p := range list {
		until := ""
		if !p.Until.IsZero() {
			until = p.Until.Format(time.DateTime)
		}
		rows[i] = []string{p.At.Format(time.DateTime), p.String(), until, p.Who, p.Why}
	}
	return screenOf(cmd).table([]column{{name: "since (UTC)"}, {name: "subject", least: 12}, {name: "until (UTC)"}, {name: "who", least: 6}, {name: "why", least: 12, prose: true}}, rows)
}

func pauseObject(p ops.Pause) any {
	return struct {
		Subject string     `json:"subject"`
		At      *time.Time `json:"at,omitempty"`
		Until   *time.Time `json:"until,omitempty"`
		Who     string     `json:"who,omitempty"`
		Why     string     `json:"why,omitempty"`
	}{p.String(), set(p.At), set(p.Until), p.Who, p.Why}
}

// confirmSubject asks for confirmation if the kind, the queue or the key of a subject may be mistyped.
func confirmSubject(cmd *cobra.Command, o *ops.Ops, s falldue.Subject, yes bool) error {
	if yes {
		return nil
	}
	says, err := doubtSubject(cmd, o, s)
	if err != nil || says == "" {
		return err
	}
	return confirm(cmd, says, yes)
}

// noTask says that no task of the kind and the queue of a subject has its key.
func noTask(s falldue.Subject) string {
	text := "no stored task"
	if s.Kind != "" {
		text += " of kind " + s.Kind
	}
	if s.Queue != "" {
		text += " in queue " + s.Queue
	}
	return text + " has the key " + s.Key
}

// doubtSubject says which name of a subject no task and no live worker has, or "".
func doubtSubject(cmd *cobra.Command, o *ops.Ops, s falldue.Subject) (string, error) {
	ctx := cmd.Context()
	if s.Kind != "" {
		if known, err := o.KnowsKind(ctx, s.Kind); err != nil || !known {
			return fmt.Sprintf("no task of kind %s waits, and no live worker handles it", s.Kind), err
		}
	}
	if s.Queue != "" {
		if known, err := o.KnowsQueue(ctx, s.Queue); err != nil || !known {
			return fmt.Sprintf("no task is in queue %s, and no live worker runs the queue", s.Queue), err
		}
	}
	if s.Key != "" {
		page, err := o.Tasks(ctx, ops.Filter{Kind: s.Kind, Queue: s.Queue, Key: s.Key}, ops.ListOptions{Limit: 1, Quick: true})
		if err != nil || len(page.Tasks) == 0 && !page.Bounded {
			return noTask(s) + "; done tasks may have been deleted", err
		}
	}
	return "", nil
}
