package main

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/falldue/falldue/ops"
)

func enqueueCommand() *cobra.Command {
	var p place
	var opts falldue.EnqueueOptions
	var priority int
	var when, until, policy string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "enqueue KIND [PAYLOAD]",
		Short: "Enqueue a task",
		Long: "Enqueue a task of a kind and print its ID. PAYLOAD is the JSON of its arguments: {} by\n" +
			"default, or - to read standard input. The command does not know your program's kinds,\n" +
			"or the codec that encrypts payloads: set the kind's queue and priority, and the task\n" +
			"key if the kind has limits per key. The payload is stored unchanged. A task of a kind\n" +
			"without a worker waits: see \"falldue overdue\".",
		Example: `  falldue enqueue invoice.send '{"order": 42}' --delay 10m`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := payloadOf(cmd, args[1:])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("priority") {
				opts.Priority = &priority
			}
			if when != "" {
				if opts.RunAt, err = timeOf("--at", when); err != nil {
					return err
				}
			}
			if until != "" {
				if opts.ExpireAt, err = timeOf("--expire-at", until); err != nil {
					return err
				}
			}
			if policy != "" {
				if opts.Policy, err = backoff.Parse(policy); err != nil {
					return mistake(fmt.Errorf("--own-policy: %w", err))
				}
			}
			if value, has := opts.Metadata[""]; has {
				return mistake(fmt.Errorf("--metadata %q: the name before the = is missing", "="+value))
			}
			if !opts.RunAt.IsZero() && opts.Delay != 0 {
				return mistake(errors.New("--delay and --at: set only one"))
			}
			if !opts.RunAt.IsZero() && !opts.ExpireAt.IsZero() && !opts.ExpireAt.After(opts.RunAt) {
				return mistake(fmt.Errorf("--expire-at %s: must be after --at %s", until, when))
			}
			return p.queue(cmd.Context(), func(q *falldue.Queue) error {
				receipt, err := falldue.NewKind[json.RawMessage](args[0], falldue.KindConfig{}).Enqueue(cmd.Context(), q, payload, opts)
				if err != nil {
					return err
				}
				return printChange(cmd, "enqueued", receipt.ID, asJSON)
			})
		},
	}
	p.flags(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return p.namesOf(queueKinds)(cmd, args, toComplete)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().StringVar(&opts.Queue, "queue", falldue.DefaultQueue, "queue in which the task waits")
	cmd.Flags().StringVar(&opts.Key, "key", "", "task key, such as customer:42")
	cmd.Flags().StringToStringVar(&opts.Metadata, "metadata", nil, "metadata as `NAME=VALUE`, such as by=ann; repeatable")
	hideDefault(cmd.Flags(), "metadata")
	numberVar(cmd.Flags(), &priority, "priority", 0, math.MinInt16, math.MaxInt16, "-32,768 to 32,767; lower numbers run first")
	spanVar(cmd.Flags(), &opts.Delay, "delay", 0, "time from now until the task is due (default due immediately)")
	cmd.Flags().StringVar(&when, "at", "", "time when the task is due, such as 2026-12-11T14:02:00Z")
	spanVar(cmd.Flags(), &opts.Timeout, "timeout", 0, "time limit for the handler (default the kind's timeout)")
	cmd.Flags().StringVar(&until, "expire-at", "", "time by which the task must start; otherwise it is cancelled")
	numberVar(cmd.Flags(), &opts.MaxAttempts, "max-attempts", 0, 0, math.MaxInt32, "maximum number of attempts; then the task is dead (default the policy's limit)")
	cmd.Flags().StringVar(&policy, "own-policy", "", "retry policy of this task (default the kind's policy)")
	complete(cmd, "own-policy", presetNames()...)
	jsonFlag(cmd, &asJSON, "print one JSON object: id, change")
	return cmd
}

// timeOf returns the time that a flag names.
func timeOf(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, mistake(fmt.Errorf("%s %q: must be a time such as 2026-12-11T14:02:00Z", flag, text))
	}
	if year := at.UTC().Year(); year < 1970 || year > 9000 {
		return at, mistake(fmt.Errorf("%s %q: must be in the years 1970 to 9000", flag, text))
	}
	return at, nil
}

// payloadOf returns the payload that the arguments give.
func payloadOf(cmd *cobra.Command, args []string) (json.RawMessage, error) {
	payload := "{}"
	switch {
	case len(args) == 1 && args[0] == "-":
		text, err := read(cmd.Context(), func() ([]byte, error) { return io.ReadAll(cmd.InOrStdin()) })
		if err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
		payload = strings.TrimSpace(string(text))
	case len(args) == 1:
		payload = args[0]
	}
	var parsed any
	if err := json.Unmarshal([]byte(payload), &parsed); err != nil {
		return nil, mistake(fmt.Errorf("the payload %.100q is not JSON: %w", payload, err))
	}
	return json.RawMessage(payload), nil
}

func printChange(cmd *cobra.Command, change string, id int64, asJSON bool) error {
	if asJSON {
		return jsonLines(cmd.OutOrStdout()).Encode(struct {
			ID     int64  `json:"id"`
			Change string `json:"change"`
		}{id, change})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %d\n", change, id)
	return err
}

func retryCommand() *cobra.Command {
	b := &bulkCommand{verb: "retry", done: "retried", expects: true, many: (*ops.Ops).RetryMany}
	expected := func() falldue.RetryOptions {
		return falldue.RetryOptions{State: falldue.State(b.filter.state), InPlace: b.options.InPlace}
	}
	b.one = func(q *falldue.Queue, ctx context.Context, id int64) error { return q.Retry(ctx, id, expected()) }
	var payload string
	cmd := &cobra.Command{
		Use:   "retry [ID...]",
		Short: "Retry dead, cancelled or done tasks",
		Long: "Make dead, cancelled or done tasks due again, with all their attempts left. The\n" +
			"recorded attempts stay, and results are removed. Without --state, flags select dead\n" +
			"tasks, and tasks listed by ID must be dead or cancelled. To run done tasks again, set\n" +
			"--state done. --rate and --over spread the tasks over time. --payload replaces the\n" +
			"payload of one task.\n\n" + bulkHelp,
		Example: `  falldue retry 4711 --payload '{"order": 42}'
  falldue retry --kind charge --newer-than 2h --rate 50 --dry-run`,
	}
	b.add(cmd)
	rateVar(cmd.Flags(), &b.options.Spread.Rate, "rate", 0, "maximum number of tasks that fall due per second (default all immediately)")
	spanVar(cmd.Flags(), &b.options.Spread.Over, "over", 0, "spread the tasks evenly over this duration, in no particular order (default all immediately)")
	cmd.Flags().StringVar(&b.from, "from", "", "time when the first task falls due, such as 2026-12-11T14:02:00Z (default now)")
	cmd.Flags().BoolVar(&b.options.InPlace, "in-place", false, "put tasks of a kind with InOrder back in their places, before tasks of the same key enqueued later (default at the end)")
	cmd.Flags().StringVar(&payload, "payload", "", "replace the task's payload with this `JSON`; - reads it from standard input")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("payload") {
			if len(args) != 1 {
				return mistake(errors.New("--payload is for one task: list its ID"))
			}
			edited, err := payloadOf(cmd, []string{payload})
			if err != nil {
				return err
			}
			b.one = func(q *falldue.Queue, ctx context.Context, id int64) error {
				o := expected()
				o.Args = edited
				return q.Retry(ctx, id, o)
			}
		}
		if b.options.Spread.Rate != 0 && b.options.Spread.Over != 0 {
			return mistake(errors.New("--rate and --over: set only one"))
		}
		if spread := b.options.Spread; len(args) > 0 && (spread.Rate != 0 || spread.Over != 0 || b.from != "") {
			return mistake(errors.New("--rate, --over and --from need flags that select tasks, such as --kind"))
		}
		for _, flag := range []string{"rate", "over", "from"} {
			if b.options.InPlace && cmd.Flags().Changed(flag) {
				return mistake(fmt.Errorf("--in-place and --%s: set only one", flag))
			}
		}
		return run(cmd, args)
	}
	return cmd
}

func changeCommand() *cobra.Command {
	var p place
	var to ops.TaskChange
	var now, asJSON bool
	var fence int64
	var priority int
	var when, payload string
	cmd := &cobra.Command{
		Use:   "change ID",
		Short: "Change a waiting task",
		Long: "Change when a waiting task runs, its queue, its priority or its payload. Its attempts\n" +
			"and its keys stay. Running, finished and blocked tasks cannot be changed. --now makes a\n" +
			"waiting task due. In a kind with InOrder, --now and --payload keep the task's place among\n" +
			"the tasks of its key. Otherwise, the time when the task is due decides its place.",
		Example: `  falldue change 4711 --now
  falldue change 4711 --at 2026-12-11T14:02:00Z --priority -5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc([]string{"now", "at", "queue", "priority", "payload"}, cmd.Flags().Changed) {
				return mistake(errors.New("nothing to change: set --now, --at, --queue, --priority or --payload"))
			}
			for _, flag := range []string{"at", "queue", "priority", "payload", "fence"} {
				if now && cmd.Flags().Changed(flag) {
					return mistake(fmt.Errorf("--now and --%s: set only one", flag))
				}
			}
			if when != "" {
				if to.RunAt, err = timeOf("--at", when); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("priority") {
				to.Priority = &priority
			}
			if cmd.Flags().Changed("fence") {
				to.Fence = &fence
			}
			if cmd.Flags().Changed("payload") {
				if to.Args, err = payloadOf(cmd, []string{payload}); err != nil {
					return err
				}
			}
			return p.queue(cmd.Context(), func(q *falldue.Queue) error {
				var err error
				if now {
					err = ops.New(q).RunNow(cmd.Context(), ids[0])
				} else {
					err = ops.New(q).ChangeTask(cmd.Context(), ids[0], to)
				}
				if err != nil {
					return err
				}
				return printChange(cmd, "changed", ids[0], asJSON)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&now, "now", false, "make the task due now")
	cmd.Flags().StringVar(&when, "at", "", "time when the task is due, such as 2026-12-11T14:02:00Z")
	cmd.Flags().StringVar(&to.Queue, "queue", "", "move the task to this queue (default unchanged)")
	numberVar(cmd.Flags(), &priority, "priority", 0, math.MinInt16, math.MaxInt16, "-32,768 to 32,767; lower numbers run first (default unchanged)")
	cmd.Flags().StringVar(&payload, "payload", "", "replace the payload with this `JSON`; - reads it from standard input")
	numberVar(cmd.Flags(), &fence, "fence", 0, 0, math.MaxInt64, "change the task only if it has this fencing token, which \"falldue show --json\" prints")
	jsonFlag(cmd, &asJSON, "print one JSON object: id, change")
	return cmd
}

func cancelCommand() *cobra.Command {
	b := &bulkCommand{verb: "cancel", done: "cancelled", asks: true, one: (*falldue.Queue).Cancel, many: (*ops.Ops).CancelMany}
	return b.add(&cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Cancel unfinished tasks",
		Long: "Cancel unfinished tasks. The context of a running handler ends within two seconds.\n" +
			"\"falldue retry\" makes a cancelled task due again.\n\n" + bulkHelp,
		Example: "  falldue cancel --kind report --phase scheduled --match '{\"month\": \"2026-11\"}'",
	})
}

func deleteCommand() *cobra.Command {
	b := &bulkCommand{verb: "delete", done: "deleted", asks: true, many: (*ops.Ops).DeleteMany}
	cmd := b.add(&cobra.Command{
		Use:   "delete [ID...]",
		Short: "Delete tasks in any state",
		Long: "Delete tasks in any state, with their recorded attempts. They cannot be retried.\n" +
			"Running tasks are skipped unless --running is set.\n\n" + bulkHelp,
		Example: "  falldue delete --state dead --older-than 720h --dry-run",
	})
	cmd.Flags().BoolVar(&b.options.Running, "running", false, "delete running tasks, too; their handlers' contexts end")
	b.one = func(q *falldue.Queue, ctx context.Context, id int64) error {
		return q.Delete(ctx, id, falldue.DeleteOptions{Running: b.options.Running})
	}
	return cmd
}

// refusedChange reports whether an error is about one task, which is missing or whose state does not
// allow a change.
func refusedChange(err error) bool {
	return errors.Is(err, falldue.ErrNotFound) || errors.Is(err, falldue.ErrWrongState) || errors.Is(err, falldue.ErrRunning)
}

// change changes tasks one by one, after ask. A task that cannot be changed does not keep the others
// from it; the error belongs to the first one.
func (p *place) change(cmd *cobra.Command, args []string, change string, asJSON bool, fn func(*falldue.Queue, context.Context, int64) error, ask func(*falldue.Queue, []int64) error) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	return p.queue(cmd.Context(), func(q *falldue.Queue) error {
		if err := ask(q, ids); err != nil {
			return err
		}
		var first error
		for _, id := range ids {
			err := fn(q, cmd.Context(), id)
			if err != nil && !refusedChange(err) {
				return err
			}
			if err == nil {
				err = printChange(cmd, change, id, asJSON)
			}
			first = cmp.Or(first, err)
		}
		return first
	})
}
