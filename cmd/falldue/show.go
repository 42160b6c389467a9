package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/steps"
)

func showCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var future int
	var stacks, asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a task with its past and future attempts",
		Long: "Show a task, its failed and lost attempts, and when its future attempts run under the\n" +
			"current policy if all of them fail.\n\n" + policyFlagHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, q *falldue.Queue) error {
				v := view{stacks: stacks}
				if v.task, err = q.Task(cmd.Context(), ids[0]); err != nil {
					return maybeDeleted(err)
				}
				if v.progress, err = q.Progress(cmd.Context(), ids[0]); err != nil {
					return err
				}
				if v.steps, err = steps.Of(cmd.Context(), q, ids[0]); err != nil {
					return err
				}
				if v.attempts, err = q.Attempts(cmd.Context(), ids[0]); err != nil {
					return err
				}
				known, err := o.Policies(cmd.Context(), v.task.Policy)
				if err != nil {
					return err
				}
				v.unreadable = known.Unreadable[v.task.Policy]
				v.code, _ = known.Code(v.task)
				if v.task.Policy == "" {
					v.releases = known.Releases(v.task.Kind)
				}
				v.override, v.overridden = known.Override(v.task)
				if v.policy, v.known = known.Of(v.task); v.known {
					if v.future, err = known.Ahead(v.task, future); err != nil {
						return mistake(err)
					}
				}
				if asJSON {
					return jsonLines(cmd.OutOrStdout()).Encode(v.object())
				}
				return v.print(screenOf(cmd))
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	countVar(cmd.Flags(), &future, "future", 5, 1_000_000, "number of future attempts to show, up to 1,000,000")
	cmd.Flags().BoolVar(&stacks, "stacks", false, "show the stack traces of panics and stuck handlers")
	jsonFlag(cmd, &asJSON, "print one JSON object, with past and future attempts")
	return cmd
}

// view is a task with its past and its future.
type view struct {
	task       falldue.TaskInfo
	progress   falldue.Progress
	steps      []steps.Step
	attempts   []falldue.Attempt
	policy     backoff.Policy
	known      bool           // whether the policy is known
	code       backoff.Policy // without overrides
	override   ops.Override
	overridden bool
	releases   []ops.KindPolicy // those that workers have for the kind, if several
	unreadable error            // why the task's own policy is not
	future     ops.Future
	stacks     bool
}

func (v view) print(s screen) error {
	t := v.task
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, plain(value))
		}
	}
	state := string(t.State)
	if ops.Running(t) {
		state += fmt.Sprintf(", runs on %s; its lease lasts %s more", t.ClaimedBy, words.Span(t.UpdatedAt.Sub(t.Now)))
	}
	attempts := strconv.Itoa(t.Attempts)
	if limit := v.limit(); limit > 0 {
		attempts += fmt.Sprintf(" of %d", limit)
	}
	line("task", strconv.FormatInt(t.ID, 10))
	line("kind", t.Kind)
	line("queue", fmt.Sprintf("%s, priority %d", t.Queue, t.Priority))
	line("key", t.Key)
	line("state", state)
	line("attempts", attempts)
	line("created", words.At(t.CreatedAt, t.Now))
	line("timeout", ownTimeout(t))
	if !t.ExpireAt.IsZero() {
		line("expires", words.At(t.ExpireAt, t.Now)+", unless it has started by then")
	}
	line("policy", v.policyText())
	if len(v.releases) > 0 {
		line("releases", policiesText(t.Kind, v.releases)+"; the first is shown")
	}
	line("payload", string(t.Payload))
	for _, name := range slices.Sorted(maps.Keys(t.Metadata)) {
		line("metadata", name+": "+t.Metadata[name])
	}
	line("progress", v.progressText())
	line("result", string(t.Result))
	line("last error", t.LastError)
	if _, err := io.WriteString(s, b.String()); err != nil {
		return err
	}
	if err := v.printSteps(s); err != nil {
		return err
	}
	if err := v.printPast(s); err != nil {
		return err
	}
	return v.printFuture(s)
}

// limit returns the number of attempts that the task has in all, 0 if there is no limit or
// it is not known.
func (v view) limit() int {
	if v.task.MaxAttempts > 0 || !v.known {
		return v.task.MaxAttempts
	}
	return v.policy.MaxAttempts()
}

func (v view) policyText() string {
	switch {
	case v.unreadable != nil:
		return "per-task (policy:" + v.task.Policy + "), which no worker can read: " + v.unreadable.Error()
	case v.task.Policy != "":
		return "per-task (policy:" + v.task.Policy + "): " + v.code.String() + v.overrideText()
	case v.known:
		return "of the kind: " + v.code.String() + v.overrideText()
	}
	return "unknown, since no live worker handles the kind; set it with --policy" + v.overrideText()
}

// overrideText says which policy is set for the task, if there is one.
func (v view) overrideText() string {
	if !v.overridden {
		return ""
	}
	if ops.IsHold(v.override.Formula) {
		return fmt.Sprintf("; now on hold, set for %s %s", v.override.Subject, untilText(v.override.Until))
	}
	text := fmt.Sprintf(" by %q, set for %s %s", v.override.Formula, v.override.Subject, untilText(v.override.Until))
	if v.known {
		return "; now " + v.policy.String() + text
	}
	return "; now changed" + text
}

// progressText says what the task's handler has reported, and whether that was in an earlier run.
func (v view) progressText() string {
	p := v.progress
	if p.UpdatedAt.IsZero() {
		return ""
	}
	text := fmt.Sprintf("%.0f %%", 100*p.Fraction)
	if p.Message != "" {
		text += ", " + p.Message
	}
	if v.task.AttemptedAt.After(p.UpdatedAt) {
		text += ", in an earlier run"
	}
	return text + ", " + words.Span(max(v.task.Now.Sub(p.UpdatedAt), 0)) + " ago"
}

// printSteps lists the recorded steps, if there are any.
func (v view) printSteps(s screen) error {
	if len(v.steps) == 0 {
		return nil
	}
	var rows [][]string
	for _, step := range v.steps {
		state, text := "done", string(step.Result)
		if !step.Done {
			state, text = "not done", string(step.Cursor)
		}
		rows = append(rows, []string{strconv.Itoa(step.Number), step.Name, state, strconv.Itoa(step.Crashes), step.UpdatedAt.Format(time.DateTime), plain(text)})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	return s.table([]column{
		{name: "#", right: true}, {name: "step"}, {name: "state"}, {name: "crashes", right: true}, {name: "written (UTC)"}, {name: "result or cursor", least: 12, prose: true},
	}, rows)
}

func (v view) printPast(s screen) error {
	if len(v.attempts) == 0 {
		_, err := io.WriteString(s, "\nno attempt has failed\n")
		return err
	}
	var rows [][]string
	for _, a := range v.attempts {
		took := words.Span(a.Duration)
		if a.Outcome == falldue.OutcomeLost {
			took = "–"
		}
		rows = append(rows, []string{strconv.Itoa(a.Attempt), a.FinishedAt.Format(time.DateTime), took, string(a.Outcome), a.Worker, a.Error})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	if err := s.table([]column{
		{name: "attempt", right: true}, {name: "ended (UTC)"}, {name: "took", right: true}, {name: "outcome"}, {name: "worker", least: 8}, {name: "error", least: 12, prose: true},
	}, rows); err != nil {
		return err
	}
	for _, a := range v.attempts {
		if !v.stacks || a.Stack == "" {
			continue
		}
		lines := strings.Split(strings.TrimRight(a.Stack, "\n"), "\n")
		for i := range lines {
			lines[i] = "  " + plain(strings.ReplaceAll(lines[i], "\t", "  "))
		}
		if _, err := fmt.Fprintf(s, "\nstack of attempt %d:\n%s\n", a.Attempt, strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (v view) printFuture(s screen) error {
	if v.task.State == falldue.StateBlocked {
		_, err := fmt.Fprintf(s, "\nit runs after other tasks: falldue why %d\n", v.task.ID)
		return err
	}
	if v.task.State != falldue.StateOpen && v.task.State != falldue.StateSnoozed {
		return nil
	}
	if v.unreadable != nil && !ops.Running(v.task) {
		_, err := io.WriteString(s, "\nit does not run until a worker can read its policy\n")
		return err
	}
	if !v.known {
		if ops.Running(v.task) || v.task.State == falldue.StateOpen && v.task.Attempts > 0 {
			return nil // the line of the policy says why
		}
		_, err := fmt.Fprintf(s, "\nattempt %d is due %s\n", v.task.Attempts+1, words.At(v.task.UpdatedAt, v.task.Now))
		return err
	}
	ending := "and so on\n"
	if v.future.GivenUp {
		ending = "then it is dead\n"
	}
	if len(v.future.Runs) == 0 {
		_, err := io.WriteString(s, "\nno attempt is left: "+ending)
		return err
	}
	var rows [][]string
	for _, r := range v.future.Runs {
		rows = append(rows, []string{strconv.Itoa(r.Attempt), band(r.Earliest.Sub(v.task.Now), r.Latest.Sub(v.task.Now)), r.Latest.Format(time.DateTime)})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	if err := s.table([]column{{name: "attempt", right: true}, {name: "due in"}, {name: "at the latest (UTC)"}}, rows); err != nil {
		return err
	}
	_, err := io.WriteString(s, ending)
	return err
}

// progressJSON is the progress of a task as JSON.
type progressJSON struct {
	Fraction  float64   `json:"fraction"`
	Message   string    `json:"message,omitempty"`
	Fence     int64     `json:"fence"`
	UpdatedAt time.Time `json:"updated_at"`
}

// taskStepJSON is a step of a task as JSON.
type taskStepJSON struct {
	Number    int             `json:"number"`
	Name      string          `json:"name"`
	Done      bool            `json:"done"`
	Crashes   int             `json:"crashes"`
	StartedAt time.Time       `json:"started_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	Result    json.RawMessage `json:"result,omitempty"`
	Cursor    json.RawMessage `json:"cursor,omitempty"`
}

// object returns the view as JSON.
func (v view) object() any {
	type past struct {
		Attempt    int             `json:"attempt"`
		Fence      int64           `json:"fence"`
		Outcome    falldue.Outcome `json:"outcome"`
		Worker     string          `json:"worker"`
		FinishedAt time.Time       `json:"finished_at"`
		Seconds    float64         `json:"seconds"`
		Error      string          `json:"error"`
		Stack      string          `json:"stack,omitempty"`
	}
	type next struct {
		Attempt  int       `json:"attempt"`
		Earliest time.Time `json:"earliest"`
		Latest   time.Time `json:"latest"`
	}
	o := struct {
		taskJSON
		PolicyText string         `json:"policy_text,omitempty"`
		Releases   []releaseJSON  `json:"kind_policies,omitempty"`
		Progress   *progressJSON  `json:"progress,omitempty"`
		Steps      []taskStepJSON `json:"steps,omitempty"`
		Past       []past         `json:"past"`
		Future     []next         `json:"future"`
		GivenUp    bool           `json:"given_up"`
	}{taskJSON: taskObject(v.task), Past: []past{}, Future: []next{}, GivenUp: v.future.GivenUp}
	if v.known {
		o.PolicyText = v.policy.String()
	}
	if len(v.releases) > 0 {
		o.Releases = releaseObjects([]ops.KindReleases{{Kind: v.task.Kind, Policies: v.releases}})
	}
	if p := v.progress; !p.UpdatedAt.IsZero() {
		o.Progress = &progressJSON{p.Fraction, p.Message, p.Fence, p.UpdatedAt}
	}
	for _, one := range v.steps {
		o.Steps = append(o.Steps, taskStepJSON{one.Number, one.Name, one.Done, one.Crashes, one.StartedAt, one.UpdatedAt, one.Result, one.Cursor})
	}
	for _, a := range v.attempts {
		o.Past = append(o.Past, past{a.Attempt, a.Fence, a.Outcome, a.Worker, a.FinishedAt, a.Duration.Seconds(), a.Error, a.Stack})
	}
	for _, r := range v.future.Runs {
		o.Future = append(o.Future, next{r.Attempt, r.Earliest, r.Latest})
	}
	return o
}
