package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/falldue/falldue"
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
		Short: "Watch queues and workers on a screen that refreshes",
		Long: "Show the queues, their lanes and when the first task of each is due, and the workers\n" +
			"with their rates, on a screen that refreshes. q ends it with status 0, Ctrl-C with 130.\n" +
			"Rates are those between the last two announcements of each worker, which are 15 seconds\n" +
			"apart. Where the output is no terminal, and with --json, it prints a line each time,\n" +
			"until you interrupt it.\n\n" + policyFlagHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < leastInterval {
				return mistake(fmt.Errorf("--interval %v; allowed are %v and more", every, leastInterval))
			}
			return p.inspector(cmd.Context(), policies, func(i *ops.Inspector, _ *falldue.Queue) error {
				t := &top{i: i, rates: rates{}}
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
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "time between two refreshes")
	cmd.Flags().IntVar(&most, "count", 0, "number of refreshes after which it ends (default 0, which is never)")
	jsonFlag(cmd, &asJSON, "print one JSON object per line: at, workers, concurrency, running, done_per_second, failed_per_second, lanes, next_due, queues, each_worker")
	return cmd
}

// top reads what the screen shows.
type top struct {
	i     *ops.Inspector
	rates rates
}

// pulse is the state of queues and workers at a moment.
type pulse struct {
	at          time.Time
	workers     []ops.Worker // that live
	rates       map[string]rate
	queues      []ops.Queue
	running     int
	concurrency int
	all         rate
	lanes       int
	next        ops.Queue // with the first task that falls due, if its name is not ""
}

// read returns the state of queues and workers now.
func (t *top) read(ctx context.Context) (p pulse, err error) {
	list, err := t.i.Workers(ctx)
	if err != nil {
		return p, err
	}
	if p.queues, err = t.i.Queues(ctx); err != nil {
		return p, err
	}
	p.at, p.rates = time.Now().UTC(), map[string]rate{}
	for _, w := range list {
		p.at = w.Now
		if !w.Live() {
			continue
		}
		r := t.rates.of(w)
		p.workers, p.rates[w.ID], p.all = append(p.workers, w), r, p.all.plus(r)
		p.running, p.concurrency = p.running+w.Running, p.concurrency+w.Concurrency()
	}
	for _, q := range p.queues {
		p.lanes += q.Lanes
		if !q.FirstDue.IsZero() && (p.next.Name == "" || q.FirstDue.Before(p.next.FirstDue)) {
			p.next = q
		}
	}
	return p, nil
}

// rate is how many tasks a second succeed, and how many attempts fail, if that is known.
type rate struct {
	done, failed float64
	known        bool
}

func (r rate) plus(other rate) rate {
	return rate{r.done + other.done, r.failed + other.failed, r.known || other.known}
}

func (r rate) text() (done, failed string) {
	if !r.known {
		return "–", "–"
	}
	return fmt.Sprintf("%.1f", r.done), fmt.Sprintf("%.1f", r.failed)
}

// rates has the last two announcements of each worker, by its id.
type rates map[string][2]ops.Worker

// of returns the rate of a worker between its last two announcements.
func (r rates) of(w ops.Worker) rate {
	last := r[w.ID]
	if !last[1].Seen.Equal(w.Seen) {
		last = [2]ops.Worker{last[1], w}
		r[w.ID] = last
	}
	if last[0].ID == "" {
		return rate{}
	}
	took := last[1].Seen.Sub(last[0].Seen).Seconds()
	return rate{float64(last[1].Done-last[0].Done) / took, float64(last[1].Failed-last[0].Failed) / took, true}
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
			err = jsonLines(cmd.OutOrStdout()).Encode(p.object())
		} else {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), p.line())
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

// line returns the state in one line.
func (p pulse) line() string {
	done, failed := p.all.text()
	line := fmt.Sprintf("%s UTC  %s, %d of %d handlers busy  %s done/s  %s failed/s  %s", p.at.Format(time.TimeOnly),
		counted(len(p.workers), "worker"), p.running, p.concurrency, done, failed, counted(p.lanes, "lane"))
	if p.next.Name != "" {
		line += fmt.Sprintf("  first task %s, in %s", dueText(p.next.FirstDue, p.next.Now), p.next.Name)
	}
	return plain(line)
}

func counted(n int, thing string) string { return countedAs(int64(n), thing) }

func countedAs(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%s %s", grouped(n), thing)
}

func (p pulse) object() any {
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
	}{p.at, len(p.workers), p.concurrency, p.running, p.all.json(p.all.done), p.all.json(p.all.failed), p.lanes, set(p.next.FirstDue), []queue{}, []worker{}}
	for _, q := range p.queues {
		o.Queues = append(o.Queues, queue{q.Name, append([]string{}, q.Kinds...), q.Lanes, set(q.FirstDue)})
	}
	for _, w := range p.workers {
		r := p.rates[w.ID]
		o.EachWorker = append(o.EachWorker, worker{w.ID, w.Release, w.Running, w.Concurrency(), r.json(r.done), r.json(r.failed), w.QueueNames()})
	}
	return o
}

// json returns a number for JSON, or nil if the rate is not known.
func (r rate) json(n float64) *float64 {
	if !r.known {
		return nil
	}
	return &n
}

// print prints the state as tables.
func (p pulse) print(s screen) error {
	if _, err := fmt.Fprintf(s, "%s\n\n", strings.Join(s.wrap(p.line(), 0), "\n")); err != nil {
		return err
	}
	var rows [][]string
	for _, q := range p.queues {
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
	for _, w := range p.workers {
		done, failed := p.rates[w.ID].text()
		rows = append(rows, []string{w.ID, w.Release, fmt.Sprintf("%d of %d", w.Running, w.Concurrency()), done, failed, approximate(w.Now.Sub(w.Started)), strings.Join(w.QueueNames(), " ")})
	}
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	return s.table([]column{
		{name: "worker", least: 10}, {name: "release", least: 8}, {name: "busy", right: true}, {name: "done/s", right: true}, {name: "failed/s", right: true},
		{name: "up", right: true}, {name: "queues", least: 8},
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
			m.failed = errInterrupted // as of other commands that go on
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
	if err := m.pulse.print(s); err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if m.height > 0 && len(lines) > m.height {
		lines = append(lines[:m.height-1], "…")
	}
	return strings.Join(lines, "\n")
}
