package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

func policyPreviewCommand() *cobra.Command {
	var retries int
	var from string
	var asJSON bool
	var picture pictureFlags
	cmd := &cobra.Command{
		Use:   "preview FORMULA...",
		Short: "Show when a task runs again whose attempts all fail, and when it is given up",
		Long: "Show when a task runs again whose attempts all fail, and when it is given up, side\n" +
			"by side for several policies. The columns of each are the wait before a retry, from\n" +
			"the shortest to the longest that the jitter allows, and the time since the first\n" +
			"failure. The chart has the shortest and the longest wait.\n\n" + policyHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			if from != "" {
				var err error
				if start, err = time.Parse(time.RFC3339, from); err != nil {
					return mistake(fmt.Errorf("--from: %q is not a time such as 2026-12-11T14:02:00Z", from))
				}
			}
			previews, err := previewsOf(args, retries)
			if err != nil {
				return err
			}
			if picture.set() {
				p, err := drawPreviews(previews)
				if err != nil {
					return err
				}
				return picture.save([][]*plot.Plot{{p}}, vg.Points(560), vg.Points(340))
			}
			if asJSON {
				return printPreviewJSON(cmd.OutOrStdout(), previews)
			}
			return printPreviews(cmd.OutOrStdout(), previews, start)
		},
	}
	cmd.Flags().IntVar(&retries, "retries", 25, "number of retries to show")
	cmd.Flags().StringVar(&from, "from", "", "time of the first failure, such as 2026-12-11T14:02:00Z (default now)")
	picture.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per retry: policy, n, and seconds of delay, jitter, earliest, latest")
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
	}
	return nil
}

func printPreviews(out io.Writer, previews []preview, start time.Time) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	top, titles, longest := "failures", "", 0
	for _, p := range previews {
		top, titles = top+"\t"+p.text+"\t", titles+"\twait\tsince the first"
		longest = max(longest, len(p.Retries))
	}
	fmt.Fprintf(table, "%s\n%s\n", top, titles)
	for i := range longest {
		line := fmt.Sprint(i + 1)
		for _, p := range previews {
			cells := "\t\t"
			if i < len(p.Retries) {
				r := p.Retries[i]
				cells = "\t" + band(r.Delay, r.Delay+r.Jitter) + "\t" + band(r.Earliest, r.Latest)
			}
			line += cells
		}
		fmt.Fprintln(table, line)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	text.Reset()
	text.WriteString(strings.Join(lines, "\n"))
	for _, p := range previews {
		fmt.Fprintf(&text, "\n%s\n", p.text)
		if len(p.Retries) > 1 {
			fmt.Fprintln(&text, waits(p.Retries))
		}
		fmt.Fprintln(&text, ending(p.Schedule, start))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// inSeconds formats a number of seconds.
func inSeconds(s float64) string { return approximate(time.Duration(s * float64(time.Second))) }

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
	attempts := fmt.Sprint(s.Fewest)
	if s.Fewest != s.Most {
		attempts = fmt.Sprintf("%d to %d", s.Fewest, s.Most)
	}
	return fmt.Sprintf("given up after %s attempts and %s, at the latest on %s", attempts, band(s.Earliest, s.Latest),
		start.Add(s.Latest).Format("2 January 2006 15:04 MST"))
}
