package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/ops"
)

func forecastCommand() *cobra.Command {
	var f profileFlags
	var policies policyFlag
	var rate float64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Show when the tasks that wait now fall due",
		Long: "Show when the tasks that wait now fall due, minute by minute, and with --rate when\n" +
			"none is due any more. Tasks that will be enqueued or fail again are not in it.\n\n" + profileHelp + "\n\n" + policyFlagHelp,
		Example: `  falldue forecast --policy mail=zizq --rate 50 --for 2h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("rate") && !(rate > 0 && rate <= 1e9) {
				return mistake(fmt.Errorf("--rate %v; allowed are numbers above 0", rate))
			}
			return f.profile(cmd, policies, func(p *ops.Profile) error {
				forecast, err := p.Forecast(f.horizon)
				if err != nil {
					return mistake(err)
				}
				if asJSON {
					return printForecastJSON(cmd, forecast, rate)
				}
				return printForecast(screenOf(cmd), forecast, rate)
			})
		},
	}
	f.flags(cmd)
	policies.flag(cmd)
	cmd.Flags().Float64Var(&rate, "rate", 0, "tasks that succeed in a second")
	jsonFlag(cmd, &asJSON, "print one JSON object per kind, and one for all, whose kind is empty")
	return cmd
}

func printForecastJSON(cmd *cobra.Command, f ops.Forecast, rate float64) error {
	return printEach(cmd, append(f.Kinds, f.All), func(k ops.KindLoad) any {
		o := struct {
			Kind    string    `json:"kind"`
			At      time.Time `json:"at"`
			Unknown int64     `json:"unknown"`
			loadJSON
			Gone *float64 `json:"gone_seconds,omitempty"`
		}{Kind: k.Kind, At: f.At, Unknown: k.Unknown, loadJSON: loadObject(k.Load)}
		if gone, ok := k.Gone(rate); rate > 0 && ok {
			seconds := gone.Seconds()
			o.Gone = &seconds
		}
		return o
	})
}

// loadJSON is a load as JSON.
type loadJSON struct {
	Due     int64   `json:"due"`
	Minutes []int64 `json:"minutes"`
	Later   int64   `json:"later"`
	Peak    int64   `json:"peak"`
	PeakAt  float64 `json:"peak_at_seconds"`
}

func loadObject(l ops.Load) loadJSON {
	return loadJSON{l.Due, l.Minutes, l.Later, l.Peak, l.PeakAt.Seconds()}
}

func printForecast(s screen, f ops.Forecast, rate float64) error {
	columns := []column{{name: "kind", least: 8}, {name: "due now", right: true}}
	var spans []int // minutes
	for _, span := range []int{1, 10, 60, 24 * 60, len(f.All.Minutes)} {
		if span <= len(f.All.Minutes) && (len(spans) == 0 || span > spans[len(spans)-1]) {
			spans = append(spans, span)
			columns = append(columns, column{name: "in " + approximate(time.Duration(span)*time.Minute), right: true})
		}
	}
	columns = append(columns, column{name: "later", right: true}, column{name: "unknown", right: true}, column{name: "peak"})
	row := func(k ops.KindLoad, name string) []string {
		r := []string{name, grouped(k.Due)}
		for _, span := range spans {
			r = append(r, grouped(within(k.Load, span)))
		}
		return append(r, grouped(k.Later), grouped(k.Unknown), peakText(k.Load))
	}
	var rows [][]string
	for _, k := range f.Kinds {
		rows = append(rows, row(k, k.Kind))
	}
	if len(f.Kinds) != 1 {
		rows = append(rows, row(f.All, "all"))
	}
	if err := s.table(columns, rows); err != nil {
		return err
	}
	var b strings.Builder
	if f.All.Unknown > 0 {
		fmt.Fprintf(&b, "\nof %s tasks that have failed the policy is not known; give it with --policy KIND=POLICY\n", grouped(f.All.Unknown))
	}
	if n := within(f.All.Load, len(f.All.Minutes)); n > 0 {
		fmt.Fprintf(&b, "\n%s\n", minutesChart(f.All.Minutes, "due in "))
	}
	if rate > 0 {
		text := strconv.FormatFloat(rate, 'g', -1, 64)
		if gone, ok := f.All.Gone(rate); ok {
			fmt.Fprintf(&b, "\nat %s tasks a second the backlog is gone after %s, on %s\n", text, approximate(gone), f.At.Add(gone).Format(time.DateTime)+" UTC")
		} else {
			fmt.Fprintf(&b, "\nat %s tasks a second some are still due after %s\n", text, approximate(time.Duration(len(f.All.Minutes))*time.Minute))
		}
	}
	_, err := io.WriteString(s, b.String())
	return err
}

// within returns how many tasks fall due in the first so many minutes.
func within(l ops.Load, minutes int) (n int64) {
	for _, m := range l.Minutes[:min(minutes, len(l.Minutes))] {
		n += m
	}
	return n
}

// peakText says how many fall due in the busiest minute, and when.
func peakText(l ops.Load) string {
	if l.Peak == 0 {
		return "–"
	}
	when := "now"
	if l.PeakAt > 0 {
		when = "in " + approximate(l.PeakAt)
	}
	return fmt.Sprintf("%s a minute, %s", grouped(l.Peak), when)
}
