package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func policyPreviewCommand() *cobra.Command {
	var retries int
	var from string
	var asJSON bool
	var picture pictureFlags
	cmd := &cobra.Command{
		Use:   "preview FORMULA...",
		Short: "Preview the retries of a task that keeps failing",
		Long: "Show when a task is retried if all its attempts fail, and when it is dead. Give\n" +
			"several policies to compare them. Each column has the shortest and the longest wait\n" +
			"with jitter, and the time since the first failure.\n\n" + policyHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			if from != "" {
				var err error
				if start, err = timeOf("--from", from); err != nil {
					return err
				}
			}
			previews, err := previewsOf(args, retries)
			if err != nil {
				return err
			}
			if picture.set() {
				if err := picture.save(drawPreviews(previews)); err != nil {
					return err
				}
			}
			if asJSON {
				return printPreviewJSON(cmd.OutOrStdout(), previews)
			}
			return printPreviews(screenOf(cmd), previews, start)
		},
	}
	countVar(cmd.Flags(), &retries, "retries", 25, 1_000_000, "number of retries to show")
	cmd.Flags().StringVar(&from, "from", "", "time of the first failure, such as 2026-12-11T14:02:00Z (default now)")
	picture.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per retry: policy, n, and seconds of delay, jitter, earliest, latest; and one per policy with the end of its retries")
	cmd.ValidArgsFunction = presetArguments(0, 0)
	return cmd
}

// preview is a policy with its schedule.
type preview struct {
	text string
	ops.Schedule
}

func previewsOf(policies []string, retries int) (list []preview, err error) {
	for _, text := range policies {
		policy, err := backoff.Parse(text)
		if err != nil {
			return nil, mistake(err)
		}
		schedule, err := ops.Preview(policy, retries)
		if err != nil {
			return nil, mistake(err)
		}
		list = append(list, preview{text, schedule})
	}
	return list, nil
}

func printPreviewJSON(out io.Writer, previews []preview) error {
	lines := json.NewEncoder(out)
	for _, p := range previews {
		for _, r := range p.Retries {
			if err := lines.Encode(struct {
				Policy   string  `json:"policy"`
				N        int     `json:"n"`
				Delay    float64 `json:"delay_seconds"`
				Jitter   float64 `json:"jitter_seconds"`
				Earliest float64 `json:"earliest_seconds"`
				Latest   float64 `json:"latest_seconds"`
			}{p.text, r.N, r.Delay.Seconds(), r.Jitter.Seconds(), r.Earliest.Seconds(), r.Latest.Seconds()}); err != nil {
				return err
			}
		}
		end := struct {
			Policy   string  `json:"policy"`
			GivenUp  bool    `json:"given_up"`
			Fewest   int     `json:"fewest_attempts,omitempty"`
			Most     int     `json:"most_attempts,omitempty"`
			Earliest float64 `json:"earliest_seconds,omitempty"`
			Latest   float64 `json:"latest_seconds,omitempty"`
		}{Policy: p.text}
		if p.Most > 0 {
			end.GivenUp, end.Fewest, end.Most, end.Earliest, end.Latest = true, p.Fewest, p.Most, p.Earliest.Seconds(), p.Latest.Seconds()
		}
		if err := lines.Encode(end); err != nil {
			return err
		}
	}
	return nil
}

func printPreviews(s screen, previews []preview, start time.Time) error {
	for i := 0; i < len(previews); {
		n := s.fitting(previews[i:])
		if i > 0 {
			if _, err := io.WriteString(s, "\n"); err != nil {
				return err
			}
		}
		if err := s.previewTable(previews[i : i+n]); err != nil {
			return err
		}
		i += n
	}
	var text strings.Builder
	for _, p := range previews {
		fmt.Fprintf(&text, "\n%s\n", p.text)
		if len(p.Retries) > 1 {
			fmt.Fprintln(&text, waits(p.Retries))
		}
		fmt.Fprintln(&text, ending(p.Schedule, start))
	}
	_, err := io.WriteString(s, text.String())
	return err
}

// fitting returns how many of the policies fit the terminal side by side, 1 at least.
func (s screen) fitting(previews []preview) int {
	if s.width == 0 {
		return len(previews)
	}
	for n := len(previews); n > 1; n-- {
		columns, rows := previewCells(previews[:n])
		total := 0
		for i, width := range (screen{}).widths(columns, rows) {
			if columns[i].least > 0 { // the name of a policy may be cut
				width = columns[i].least
			}
			total += width + gap
		}
		if total <= s.width {
			return n
		}
	}
	return 1
}

func (s screen) previewTable(previews []preview) error {
	columns, rows := previewCells(previews)
	return s.table(columns, rows)
}

// previewCells returns the cells of a table of policies: the first row has its titles, since
// the names of the policies are above them.
func previewCells(previews []preview) (columns []column, rows [][]string) {
	columns, rows = []column{{name: "failures"}}, [][]string{{""}}
	longest := 0
	for _, p := range previews {
		longest = max(longest, len(p.Retries))
	}
	for i := range longest {
		rows = append(rows, []string{strconv.Itoa(i + 1)})
	}
	for _, p := range previews {
		first := len(columns)
		columns = append(columns, column{name: p.text}, column{name: ""})
		rows[0] = append(rows[0], "wait", "since the first")
		for i := range longest {
			wait, since := "", ""
			if i < len(p.Retries) {
				r := p.Retries[i]
				wait, since = band(r.Delay, r.Delay+r.Jitter), band(r.Earliest, r.Latest)
			}
			rows[i+1] = append(rows[i+1], wait, since)
		}
		columns[first].least = (screen{}).widths([]column{{}}, firstCells(rows, first))[0]
	}
	return columns, rows
}

// firstCells returns the cells of one column, as rows.
func firstCells(rows [][]string, at int) (cells [][]string) {
	for _, r := range rows {
		cells = append(cells, []string{r[at]})
	}
	return cells
}

// inSeconds formats a number of seconds.
func inSeconds(s float64) string { return words.Span(time.Duration(s * float64(time.Second))) }

// waits draws the shortest and the longest wait of each retry.
func waits(retries []ops.Retry) string {
	shortest, longest := make([]float64, len(retries)), make([]float64, len(retries))
	for i, r := range retries {
		shortest[i], longest[i] = r.Delay.Seconds(), (r.Delay + r.Jitter).Seconds()
	}
	return asciigraph.PlotMany([][]float64{longest, shortest}, asciigraph.Height(10), asciigraph.Width(60),
		asciigraph.YAxisValueFormatter(inSeconds), asciigraph.XAxisRange(1, float64(len(retries))), asciigraph.XAxisTickCount(min(len(retries), 5)),
		asciigraph.XAxisValueFormatter(func(n float64) string { return fmt.Sprintf("%.0f", n) }))
}

// ending says when a task is given up whose first failure is at start.
func ending(s ops.Schedule, start time.Time) string {
	if s.Most == 0 {
		return fmt.Sprintf("not given up after %d retries", len(s.Retries))
	}
	return fmt.Sprintf("given up after %s and %s, at the latest on %s", attemptsText(s), band(s.Earliest, s.Latest),
		start.Add(s.Latest).Format("2 January 2006 15:04 MST"))
}

// attemptsText says after how many attempts a task is given up.
func attemptsText(s ops.Schedule) string {
	if s.Fewest != s.Most {
		return fmt.Sprintf("%d to %d attempts", s.Fewest, s.Most)
	}
	return fmt.Sprintf("%d attempts", s.Most)
}
