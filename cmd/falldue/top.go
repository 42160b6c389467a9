package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func topCommand() *cobra.Command {
	var p place
	var policies policyFlag
	var every time.Duration
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch queues and workers on a live screen",
		Long: "Show the queues, with the number of their lanes (groups of tasks with the same delay)\n" +
			"and their first tasks, and the workers with their rates, on a live screen. Press\n" +
			"q to end it with status 0. Rates cover the last two heartbeats of each worker, which\n" +
			"are 15 seconds apart. If the output is not a terminal, or with --json, the command\n" +
			"prints a line at each refresh, until you interrupt the command.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < leastInterval {
				return mistake(fmt.Errorf("--interval %v: must be %v or more", every, leastInterval))
			}
			return p.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				t := &top{Monitor: o.NewMonitor(), ops: o}
				s := screenOf(cmd)
				if s.width > 0 && !asJSON {
					return t.onTerminal(cmd, s, every, most)
				}
				return t.onLines(cmd, every, most, asJSON)
			})
		},
	}
	p.flags(cmd)
	policies.flag(cmd)
	spanVar(cmd.Flags(), &every, "interval", 2*time.Second, "time between two refreshes")
	numberVar(cmd.Flags(), &most, "count", 0, 0, math.MaxInt32, "number of refreshes (default no limit)")
	jsonFlag(cmd, &asJSON, "print one JSON object per line: at, workers, concurrency, running, done_per_second, failed_per_second, lanes, next_due, queues, each_worker, failed_kinds")
	return cmd
}

// top shows what a monitor reads.
type top struct {
	*ops.Monitor
	ops    *ops.Ops
	errors ops.Failures // as they were read last
	readAt time.Time    // when that was
}

// errorsEvery is the time between two readings of failed tasks, which cost more than the rest.
const errorsEvery = 15 * time.Second

// pulse is what top shows.
type pulse struct {
	ops.Pulse
	kinds  []ops.KindRuns // with failures
	errors ops.Failures   // if a kind fails
}

// read reads the state, and errors if a kind fails.
func (t *top) read(ctx context.Context) (p pulse, err error) {
	if p.Pulse, err = t.Read(ctx); err != nil {
		return p, err
	}
	p.kinds = slices.DeleteFunc(ops.RunsByKind(p.Workers), func(k ops.KindRuns) bool { return k.Failed == 0 })
	if slices.ContainsFunc(p.kinds, ops.KindRuns.Failing) {
		if time.Since(t.readAt) > errorsEvery {
			if t.errors, err = t.Failures(ctx); err != nil {
				return p, err
			}
			t.readAt = time.Now()
		}
		p.errors = t.errors
	}
	return p, nil
}

// rateTexts returns the numbers of a rate.
func rateTexts(r ops.Rate) (done, failed string) {
	if !r.Known {
		return "–", "–"
	}
	return fmt.Sprintf("%.1f", r.Done), fmt.Sprintf("%.1f", r.Failed)
}

// onLines prints a line each time.
func (t *top) onLines(cmd *cobra.Command, every time.Duration, most int, asJSON bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		p, err := t.read(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			err = jsonLines(cmd.OutOrStdout()).Encode(pulseObject(p))
		} else {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pulseLine(p))
		}
		if err != nil || n == most {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-tick.C:
		}
	}
}

// lanesText is the number of lanes.
func lanesText(p pulse) string {
	if p.More {
		return "more than " + counted(p.Lanes(), "lane")
	}
	return counted(p.Lanes(), "lane")
}

// pulseLine returns the state in one line.
func pulseLine(p pulse) string {
	done, failed := rateTexts(p.Rate)
	line := fmt.Sprintf("%s UTC  %s, %d of %d handlers busy  %s done/s  %s failed/s  %s", p.At.Format(time.TimeOnly),
		counted(len(p.Workers), "worker"), p.Running(), p.Concurrency(), done, failed, lanesText(p))
	if first, ok := p.First(); ok {
		line += fmt.Sprintf("  first task %s, in %s", dueText(first.FirstDue, first.Now), first.Name)
	}
	for _, k := range p.kinds {
		if k.Failing() {
			line += fmt.Sprintf("  %s fails (%.0f%%)", k.Kind, 100*k.Ratio())
		}
	}
	return plain(line)
}

func counted(n int, thing string) string { return words.Count(int64(n), thing) }

func pulseObject(p pulse) any {
	type queue struct {
		Queue    string     `json:"queue"`
		Kinds    []string   `json:"kinds"`
		Lanes    int        `json:"lanes"`
		FirstDue *time.Time `json:"first_due,omitempty"`
	}
	type worker struct {
		ID          string   `json:"id"`
		Release     string   `json:"release,omitempty"`
		Running     int      `json:"running"`
		Concurrency int      `json:"concurrency"`
		Done        *float64 `json:"done_per_second,omitempty"`
		Failed      *float64 `json:"failed_per_second,omitempty"`
		Queues      []string `json:"queues"`
	}
	type kind struct {
		Kind    string  `json:"kind"`
		Done    int64   `json:"done"`
		Failed  int64   `json:"failed"`
		Seconds float64 `json:"seconds"`
		Failing bool    `json:"failing"`
		Error   string  `json:"error,omitempty"`
		Task    int64   `json:"task,omitempty"`
	}
	o := struct {
		At          time.Time  `json:"at"`
		Workers     int        `json:"workers"`
		Concurrency int        `json:"concurrency"`
		Running     int        `json:"running"`
		Done        *float64   `json:"done_per_second,omitempty"`
		Failed      *float64   `json:"failed_per_second,omitempty"`
		Lanes       int        `json:"lanes"`
		NextDue     *time.Time `json:"next_due,omitempty"`
		Queues      []queue    `json:"queues"`
		EachWorker  []worker   `json:"each_worker"`
		Kinds       []kind     `json:"failed_kinds"`
	}{p.At, len(p.Workers), p.Concurrency(), p.Running(), nil, nil, p.Lanes(), nil, []queue{}, []worker{}, []kind{}}
	for _, k := range p.kinds {
		one := kind{Kind: k.Kind, Done: k.Done, Failed: k.Failed, Seconds: k.Over.Seconds(), Failing: k.Failing()}
		for _, g := range p.errors.Of(k.Kind).Top(1) {
			one.Error, one.Task = g.Error, g.Newest
		}
		o.Kinds = append(o.Kinds, one)
	}
	o.Done, o.Failed = rateNumbers(p.Rate)
	if first, ok := p.First(); ok {
		o.NextDue = &first.FirstDue
	}
	for _, q := range p.Queues {
		o.Queues = append(o.Queues, queue{q.Name, append([]string{}, q.Kinds...), q.Lanes, set(q.FirstDue)})
	}
	for _, w := range p.Workers {
		done, failed := rateNumbers(p.Rates[w.ID])
		o.EachWorker = append(o.EachWorker, worker{w.ID, w.Release, w.Running, w.Concurrency(), done, failed, w.QueueNames()})
	}
	return o
}

// rateNumbers returns the numbers of a rate for JSON, or nil if it is not known.
func rateNumbers(r ops.Rate) (done, failed *float64) {
	if !r.Known {
		return nil, nil
	}
	return &r.Done, &r.Failed
}

// printPulse prints the state as tables.
func printPulse(s screen, p pulse) error {
	if _, err := fmt.Fprintf(s, "%s\n\n", strings.Join(s.wrap(pulseLine(p), 0), "\n")); err != nil {
		return err
	}
	var rows [][]string
	for _, q := range p.Queues {
		first := "–"
		if !q.FirstDue.IsZero() {
			first = dueText(q.FirstDue, q.Now)
		}
		rows = append(rows, []string{q.Name, grouped(int64(q.Lanes)), first, strings.Join(q.Kinds, " ")})
	}
	if err := s.table([]column{{name: "queue", least: 8}, {name: "lanes", right: true}, {name: "first task"}, {name: "kinds", least: 10}}, rows); err != nil {
		return err
	}
	rows = nil
	for _, w := range p.Workers {
		done, failed := rateTexts(p.Rates[w.ID])
		rows = append(rows, []string{w.ID, w.Release, fmt.Sprintf("%d of %d", w.Running, w.Concurrency()), done, failed, words.Span(w.Now.Sub(w.Started)), strings.Join(w.QueueNames(), " ")})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	if err := s.table([]column{
		{name: "worker", least: 10}, {name: "release", least: 8}, {name: "busy", right: true}, {name: "done/s", right: true}, {name: "failed/s", right: true},
		{name: "up", right: true}, {name: "queues", least: 8},
	}, rows); err != nil || len(p.kinds) == 0 {
		return err
	}
	rows = nil
	for _, k := range p.kinds {
		often := ""
		for _, g := range p.errors.Of(k.Kind).Top(1) {
			often = fmt.Sprintf("task %d: %s", g.Newest, g.Error)
		}
		rows = append(rows, []string{k.Kind, fmt.Sprintf("%.0f%%", 100*k.Ratio()), grouped(k.Done), grouped(k.Failed), words.Span(k.Over.Round(time.Second)), often})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	return s.table([]column{
		{name: "kind", least: 8}, {name: "fails", right: true}, {name: "done", right: true}, {name: "failed", right: true}, {name: "in", right: true}, {name: "most often", least: 12, prose: true},
	}, rows)
}

// onTerminal shows the state on a screen of its own.
func (t *top) onTerminal(cmd *cobra.Command, s screen, every time.Duration, most int) error {
	m := topScreen{read: func() tea.Msg {
		p, err := t.read(cmd.Context())
		if err != nil {
			return err
		}
		return p
	}, every: every, most: most, screen: s}
	input := tea.WithInput(nil)
	if file, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		input = tea.WithInput(file)
	}
	options := []tea.ProgramOption{tea.WithContext(cmd.Context()), tea.WithOutput(s.Writer), tea.WithoutSignalHandler(), input}
	last, err := tea.NewProgram(m, options...).Run()
	if end, ok := last.(topScreen); ok && err == nil {
		return end.failed
	}
	if errors.Is(err, tea.ErrProgramKilled) && cmd.Context().Err() != nil {
		return cmd.Context().Err()
	}
	return err
}

// topScreen is the screen of a terminal.
type topScreen struct {
	read   func() tea.Msg
	every  time.Duration
	most   int
	screen screen
	height int
	frames int
	pulse  pulse
	err    error // of the last read
	failed error // with which it ends
}

// refresh is the message that it is time to read again.
type refresh struct{}

// Init implements tea.Model.
func (m topScreen) Init() tea.Cmd { return m.read }

// Update implements tea.Model.
func (m topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc":
			return m, tea.Quit
		case "ctrl+c":
			m.failed = errInterrupted // as of other commands that continue
			return m, tea.Quit
		}
	case refresh:
		return m, m.read
	case error:
		if m.frames == 0 {
			m.failed = msg
			return m, tea.Quit
		}
		m.err = msg // it may be over soon
		return m, m.later()
	case pulse:
		m.pulse, m.err = msg, nil
		if m.frames++; m.frames == m.most {
			return m, tea.Quit
		}
		return m, m.later()
	}
	return m, nil
}

func (m topScreen) later() tea.Cmd {
	return tea.Tick(m.every, func(time.Time) tea.Msg { return refresh{} })
}

// View implements tea.Model.
func (m topScreen) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

func (m topScreen) text() string {
	if m.frames == 0 {
		return "reading …"
	}
	var b strings.Builder
	s := m.screen
	s.Writer = &b
	if m.err != nil {
		fmt.Fprintf(s, "%s\n", strings.Join(s.wrap(plain("cannot read: "+m.err.Error()), 0), "\n"))
	}
	if err := printPulse(s, m.pulse); err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if m.height > 0 && len(lines) > m.height {
		lines = append(lines[:m.height-1], "…")
	}
	return strings.Join(lines, "\n")
}
