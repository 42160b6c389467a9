package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func policyListCommand() *cobra.Command {
	var p place
	var own, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List presets, or per-task policies",
		Long: "List the presets with their parameters, formulas and sources, without a database. With\n" +
			"--own, list the per-task policies of unfinished tasks, with the number of tasks and\n" +
			"lanes of each. A lane is a group of tasks with the same delay. The command counts up to\n" +
			"10,000 tasks of each lane. \"falldue policy show KEY\" shows a policy by its key.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !own {
				return printPresets(cmd, asJSON)
			}
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				list, err := o.OwnPolicies(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printEach(cmd, list, ownPolicyObject)
				}
				return printOwnPolicies(screenOf(cmd), list)
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().BoolVar(&own, "own", false, "list per-task policies")
	jsonFlag(cmd, &asJSON, "print one JSON object per line; with --own: key, policy or error, queue, kind, lanes, tasks, more")
	return cmd
}

func ownPolicyObject(o ops.OwnPolicy) any {
	object := struct {
		Key    string `json:"key"`
		Policy string `json:"policy,omitempty"`
		Error  string `json:"error,omitempty"`
		Queue  string `json:"queue"`
		Kind   string `json:"kind"`
		Lanes  int    `json:"lanes"`
		Tasks  int    `json:"tasks"`
		More   bool   `json:"more,omitempty"` // than tasks
	}{o.Key, o.Text, "", o.Queue, o.Kind, o.Lanes, o.Tasks, o.More}
	if o.Err != nil {
		object.Error = o.Err.Error()
	}
	return object
}

func printOwnPolicies(s screen, list []ops.OwnPolicy) error {
	if len(list) == 0 {
		_, err := io.WriteString(s, "no waiting task has a per-task policy\n")
		return err
	}
	rows := make([][]string, len(list))
	for i, o := range list {
		policy, tasks := o.Text, grouped(int64(o.Tasks))
		if o.Err != nil {
			policy = "cannot be read: " + o.Err.Error()
		}
		if o.More {
			tasks = "more than " + tasks
		}
		rows[i] = []string{o.Key, o.Queue, o.Kind, strconv.Itoa(o.Lanes), tasks, policy}
	}
	return s.table([]column{{name: "key"}, {name: "queue", least: 8}, {name: "kind", least: 8}, {name: "lanes", right: true}, {name: "tasks", right: true}, {name: "policy", least: 12}}, rows)
}

func printPresets(cmd *cobra.Command, asJSON bool) error {
	w := bufio.NewWriter(cmd.OutOrStdout())
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for i, preset := range backoff.Presets() {
		if asJSON {
			if err := lines.Encode(preset); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		printPreset(w, preset)
	}
	return w.Flush()
}

// printPreset ignores write errors: the writer keeps the first, and Flush returns
// it.
func printPreset(w *bufio.Writer, p backoff.Preset) {
	defaults := make([]string, len(p.Params))
	for i, param := range p.Params {
		defaults[i] = param.Name + "=" + param.Default
	}
	fmt.Fprintf(w, "%s(%s)\n  %s\n", p.Name, strings.Join(defaults, ", "), p.Doc)
	for _, part := range []struct{ name, text string }{
		{"delay", p.Delay}, {"jitter", p.Jitter}, {"attempts", p.MaxAttempts}, {"elapsed", p.MaxElapsed},
	} {
		if part.text != "" {
			fmt.Fprintf(w, "  %-13s %s\n", part.name, part.text)
		}
	}
	for _, param := range p.Params {
		fmt.Fprintf(w, "  %-13s %s, %s: %s\n", param.Name, param.Kind, param.Range(), param.Doc)
	}
	fmt.Fprintf(w, "  %-13s %s\n", "source", p.Source)
}
