package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func workersCommand() *cobra.Command {
	var p place
	var kinds, asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List workers, and kinds with different policies",
		Long: "List the workers, which send a heartbeat every 15 seconds. A worker that sent none for\n" +
			"a minute is lost: it has died, or cannot reach the database, and stays in the list for\n" +
			"an hour. Status 4 means that a worker is lost, that a kind has tasks and no live\n" +
			"worker, that workers have different policies for a kind (as during a deploy), or that\n" +
			"a worker cannot apply a policy or a pause. The command also lists the queues with no\n" +
			"free handler.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				list, err := o.Workers(cmd.Context())
				if err != nil {
					return err
				}
				queues, err := o.Queues(cmd.Context())
				if err != nil {
					return err
				}
				f := fleet{list, ops.KindPolicies(list), ops.Unhandled(queues, list), ops.BusyQueues(list), ops.RefusedOverrides(list), kinds}
				if asJSON {
					err = f.printJSON(cmd)
				} else {
					err = f.print(screenOf(cmd))
				}
				if err == nil && f.attention() {
					err = finding(exitAttention)
				}
				return err
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&kinds, "kinds", false, "also list the kinds with their policies")
	jsonFlag(cmd, &asJSON, "print one JSON object per worker, then one per kind with different policies (kind, policies), and per kind that no worker handles (unhandled_kind, queue)")
	return cmd
}

// fleet is what the workers are and do.
type fleet struct {
	workers   []ops.Worker
	policies  map[string][]ops.KindPolicy
	unhandled []ops.QueueKind
	busy      []ops.QueueHandlers
	refused   []ops.RefusedOverride
	kinds     bool // whether to print those whose workers have one policy, too
}

// attention reports whether the workers need a person's attention.
func (f fleet) attention() bool {
	lost := slices.ContainsFunc(f.workers, func(w ops.Worker) bool {
		return !w.Live() || w.Unread != "" || len(w.UnreadPolicies)+len(w.RefusedPauses) > 0
	})
	for _, list := range f.policies {
		lost = lost || len(list) > 1
	}
	return lost || len(f.unhandled)+len(f.refused) > 0
}

// printJSON prints the workers, kinds with their policies, and those that no worker handles.
func (f fleet) printJSON(cmd *cobra.Command) error {
	if err := printEach(cmd, f.workers, workerObject); err != nil {
		return err
	}
	type policy struct {
		Policy   string   `json:"policy"`
		Workers  []string `json:"workers"`
		Releases []string `json:"releases"`
	}
	lines := jsonLines(cmd.OutOrStdout())
	for _, kind := range slices.Sorted(maps.Keys(f.policies)) {
		o := struct {
			Kind     string   `json:"kind"`
			Policies []policy `json:"policies"`
		}{Kind: kind}
		for _, p := range f.policies[kind] {
			o.Policies = append(o.Policies, policy{p.Policy, p.Workers, p.Releases})
		}
		if !f.kinds && len(o.Policies) < 2 {
			continue
		}
		if err := lines.Encode(o); err != nil {
			return err
		}
	}
	return printEach(cmd, f.unhandled, func(u ops.QueueKind) any {
		return struct {
			Kind  string `json:"unhandled_kind"`
			Queue string `json:"queue"`
		}{u.Kind, u.Queue}
	})
}

func (f fleet) print(s screen) error {
	if err := f.printWorkers(s); err != nil {
		return err
	}
	var rows [][]string
	differ := false
	for _, kind := range slices.Sorted(maps.Keys(f.policies)) {
		list := f.policies[kind]
		differ = differ || len(list) > 1
		for _, p := range list {
			if f.kinds || len(list) > 1 {
				rows = append(rows, []string{kind, strconv.Itoa(len(p.Workers)), strings.Join(p.Releases, " "), p.Policy})
			}
		}
	}
	if len(rows) > 0 {
		title := "\n"
		if differ {
			title = "\nkinds for which workers have different policies, as during a deployment:\n"
			if f.kinds {
				title = "\nworkers have different policies for a kind, as during a deployment:\n"
			}
		}
		if _, err := io.WriteString(s, title); err != nil {
			return err
		}
		if err := s.table([]column{{name: "kind", least: 8}, {name: "workers", right: true}, {name: "releases", least: 8}, {name: "policy", least: 12}}, rows); err != nil {
			return err
		}
	}
	var b strings.Builder
	for _, w := range f.workers {
		if w.Live() && w.Unread != "" {
			fmt.Fprintf(&b, "worker %s cannot read pauses, overrides and cancellations: %s\n", plain(w.ID), plain(w.Unread))
		}
	}
	for _, w := range f.workers {
		for _, key := range slices.Sorted(maps.Keys(w.UnreadPolicies)) {
			if w.Live() {
				fmt.Fprintf(&b, "worker %s cannot read per-task policy %s, and does not run its tasks: %s\n", plain(w.ID), plain(key), plain(w.UnreadPolicies[key]))
			}
		}
	}
	for _, p := range ops.RefusedPauses(f.workers) {
		fmt.Fprintln(&b, plain(p.String()))
	}
	for _, r := range f.refused {
		fmt.Fprintln(&b, plain(r.String()))
	}
	for _, h := range f.busy {
		fmt.Fprintf(&b, "all %s of queue %s are busy: its tasks wait until a handler is free\n", counted(h.Concurrency, "handler"), plain(h.Queue))
	}
	for _, u := range f.unhandled {
		fmt.Fprintf(&b, "no live worker handles kind %s in queue %s, where tasks wait\n", plain(u.Kind), plain(u.Queue))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(s, "\n"+b.String())
	return err
}

func (f fleet) printWorkers(s screen) error {
	if len(f.workers) == 0 {
		_, err := io.WriteString(s, "no worker has sent a heartbeat\n")
		return err
	}
	var rows [][]string
	for _, w := range f.workers {
		seen := words.Span(max(w.Now.Sub(w.Seen), 0)) + " ago"
		switch {
		case w.Unreadable != nil:
			seen += ", unreadable"
		case !w.Live():
			seen += ", lost"
		case w.Stopping:
			seen += ", stopping"
		}
		rows = append(rows, []string{
			w.ID, w.Release, fmt.Sprintf("%d of %d", w.Running, w.Concurrency()), grouped(w.Done), grouped(w.Failed),
			strconv.Itoa(len(w.Kinds)), words.Span(w.Now.Sub(w.Started)), seen, strings.Join(w.QueueNames(), " "),
		})
	}
	return s.table([]column{
		{name: "worker", least: 10}, {name: "release", least: 8}, {name: "running", right: true}, {name: "done", right: true}, {name: "failed", right: true},
		{name: "kinds", right: true}, {name: "up", right: true}, {name: "seen"}, {name: "queues", least: 8},
	}, rows)
}

// workerObject returns a worker as JSON.
func workerObject(w ops.Worker) any {
	type queue struct {
		Concurrency int      `json:"concurrency"`
		Running     int      `json:"running"`
		Limits      []string `json:"limits,omitempty"`
	}
	type kind struct {
		Policy string   `json:"policy"`
		Limits []string `json:"limits,omitempty"`
	}
	type refused struct {
		Subject string `json:"subject"`
		Own     string `json:"own,omitempty"`
		Holds   string `json:"holds,omitempty"`
		Error   string `json:"error"`
	}
	o := struct {
		ID        string            `json:"id"`
		Host      string            `json:"host"`
		PID       int               `json:"pid"`
		Release   string            `json:"release,omitempty"`
		Library   string            `json:"library,omitempty"`
		Live      bool              `json:"live"`
		Stopping  bool              `json:"stopping"`
		Running   int               `json:"running"`
		Done      int64             `json:"done"`
		Failed    int64             `json:"failed"`
		Queues    map[string]queue  `json:"queues"`
		Kinds     map[string]kind   `json:"kinds"`
		StartedAt time.Time         `json:"started_at"`
		SeenAt    time.Time         `json:"seen_at"`
		Refused   []refused         `json:"refused,omitempty"`
		Unread    string            `json:"unread,omitempty"`
		Policies  map[string]string `json:"unreadable_policies,omitempty"`
		Pauses    map[string]string `json:"refused_pauses,omitempty"`
	}{
		w.ID, w.Host, w.PID, w.Release, w.Library, w.Live(), w.Stopping, w.Running, w.Done, w.Failed,
		map[string]queue{}, map[string]kind{}, w.Started, w.Seen, nil, w.Unread, w.UnreadPolicies, w.RefusedPauses,
	}
	for _, r := range w.Refused {
		o.Refused = append(o.Refused, refused{r.Subject, r.Own, r.Holds, r.Error})
	}
	for name, q := range w.Queues {
		o.Queues[name] = queue{q.Concurrency, q.Running, q.Limits}
	}
	for name, k := range w.Kinds {
		o.Kinds[name] = kind{k.Policy, k.Limits}
	}
	return o
}
