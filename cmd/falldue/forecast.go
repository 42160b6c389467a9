package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func forecastCommand() *cobra.Command {
	var f profileFlags
	var policies policyFlag
	var rate float64
	var kind string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Forecast when waiting tasks fall due",
		Long: "Show minute by minute when waiting tasks fall due, and when the backlog is gone, at\n" +
			"--rate or at the rate of the live workers in the last five minutes. New tasks,\n" +
			"further failures and limits are not included; the output names the limits that live\n" +
			"workers apply.\n\n" + profileHelp + "\n" + policyFlagHelp,
		Example: `  falldue forecast --policy mail=zizq --rate 50 --for 2h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.ops(cmd.Context(), policies, func(o *ops.Ops, _ *falldue.Queue) error {
				p, err := f.read(cmd, o, "")
				if err != nil {
					return err
				}
				forecast, err := p.Forecast(f.horizon)
				if err != nil {
					return mistake(err)
				}
				if kind != "" {
					forecast = onlyKind(forecast, kind)
				}
				workers, err := o.Workers(cmd.Context())
				if err != nil { // a user may lack the permission
					workers = nil
				}
				pace := liveOrGiven(workers, kind, rate)
				limits := announcedLimits(workers, kind)
				if asJSON {
					return printForecastJSON(cmd, forecast, pace, limits, p.Releases(kind))
				}
				return printForecast(screenOf(cmd), forecast, pace, limits, p.Releases(kind))
			})
		},
	}
	f.flags(cmd)
	f.horizonFlag(cmd)
	policies.flag(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "only waiting tasks of this kind")
	f.completeNames(cmd, "kind", queueKinds)
	rateVar(cmd.Flags(), &rate, "rate", 0, "tasks that succeed per second (default the rate of live workers in the last five minutes)")
	jsonFlag(cmd, &asJSON, "print one JSON object per kind, and one for all, whose kind is empty")
	return cmd
}

// onlyKind returns the forecast of one kind.
func onlyKind(f ops.Forecast, kind string) ops.Forecast {
	none := ops.KindLoad{Kind: kind, Load: ops.Load{Minutes: make([]int64, len(f.All.Minutes))}}
	if i := slices.IndexFunc(f.Kinds, func(k ops.KindLoad) bool { return k.Kind == kind }); i >= 0 {
		none = f.Kinds[i]
	}
	f.Kinds, f.All = []ops.KindLoad{none}, none
	f.All.Kind = ""
	return f
}

// liveOrGiven returns the pace of the live workers with tasks of a kind, or of all if it is "". Of a
// given pace Over is 0.
func liveOrGiven(workers []ops.Worker, kind string, perSecond float64) ops.Pace {
	if perSecond > 0 {
		return ops.Pace{PerSecond: perSecond}
	}
	pace := ops.PaceOf(workers)
	pace.PerSecond = pace.Of(kind)
	return pace
}

// announcedLimits lists the limits that live workers apply to tasks of a kind, or to any if it is "".
func announcedLimits(workers []ops.Worker, kind string) (list []string) {
	add := func(owner, name string, limits []string) {
		for _, l := range limits {
			list = append(list, fmt.Sprintf("%s of %s %s", l, owner, name))
		}
	}
	for _, w := range workers {
		if _, handles := w.Kinds[kind]; !w.Live() || kind != "" && !handles {
			continue
		}
		for name, k := range w.Kinds {
			if kind == "" || name == kind {
				add("kind", name, k.Limits)
			}
		}
		for name, q := range w.Queues {
			add("queue", name, q.Limits)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// limitsText names limits that a computation leaves out, or is "".
func limitsText(limits []string) string {
	if len(limits) == 0 {
		return ""
	}
	return "tasks may start later than shown, because of limits: " + strings.Join(limits, ", ") + "\n"
}

// stalledKinds lists the kinds with due tasks that the live workers do not do. A given pace is the pace of each kind.
func stalledKinds(f ops.Forecast, p ops.Pace) []string {
	if p.Over == 0 {
		return nil
	}
	return f.Stalled(p)
}

// rateOf returns the pace of a kind. A given pace is the pace of each kind.
func rateOf(p ops.Pace, kind string) float64 {
	if p.Over == 0 {
		return p.PerSecond
	}
	return p.Of(kind)
}

func printForecastJSON(cmd *cobra.Command, f ops.Forecast, pace ops.Pace, limits []string, releases []ops.KindReleases) error {
	return printEach(cmd, append(f.Kinds, f.All), func(k ops.KindLoad) any {
		o := struct {
			Kind    string    `json:"kind"`
			At      time.Time `json:"at"`
			Unknown int64     `json:"unknown"`
			loadJSON
			Rate     float64       `json:"rate,omitempty"`
			Gone     *float64      `json:"gone_seconds,omitempty"`
			Releases []releaseJSON `json:"kind_policies,omitempty"`
			Limits   []string      `json:"limits_not_included,omitempty"`
		}{Kind: k.Kind, At: f.At, Unknown: k.Unknown, loadJSON: loadObject(k.Load), Rate: rateOf(pace, k.Kind), Limits: limits}
		o.Releases = releaseObjects(slices.DeleteFunc(slices.Clone(releases), func(r ops.KindReleases) bool { return r.Kind != k.Kind }))
		if o.Rate > 0 && (k.Kind != "" || len(stalledKinds(f, pace)) == 0) {
			if gone, ok := k.Gone(o.Rate); ok {
				seconds := gone.Seconds()
				o.Gone = &seconds
			}
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

func printForecast(s screen, f ops.Forecast, pace ops.Pace, limits []string, releases []ops.KindReleases) error {
	columns := []column{{name: "kind", least: 8}, {name: "due now", right: true}}
	var spans []int // minutes
	for _, span := range []int{1, 10, 60, 24 * 60, len(f.All.Minutes)} {
		if span <= len(f.All.Minutes) && (len(spans) == 0 || span > spans[len(spans)-1]) {
			spans = append(spans, span)
			columns = append(columns, column{name: "in " + words.Span(time.Duration(span)*time.Minute), right: true})
		}
	}
	columns = append(columns, column{name: "later", right: true}, column{name: "unknown", right: true})
	counted := pace.Over > 0 && pace.PerSecond > 0
	if counted {
		columns = append(columns, column{name: "done/min", right: true})
	}
	columns = append(columns, column{name: "peak"})
	row := func(k ops.KindLoad, name string) []string {
		r := []string{name, grouped(k.Due)}
		for _, span := range spans {
			r = append(r, grouped(k.Within(span)))
		}
		r = append(r, grouped(k.Later), grouped(k.Unknown))
		if counted {
			r = append(r, grouped(int64(math.Round(60*rateOf(pace, k.Kind)))))
		}
		return append(r, peakText(k.Load))
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
	if len(releases) > 0 {
		b.WriteString("\n" + releasesText(releases))
	}
	if text := limitsText(limits); text != "" {
		b.WriteString("\n" + text)
	}
	if f.All.Unknown > 0 {
		fmt.Fprintf(&b, "\nunknown: no live worker handles the kind of %s; set its policy with --policy KIND=POLICY\n", words.Count(f.All.Unknown, "failed task"))
	}
	if n := f.All.Within(len(f.All.Minutes)); n > 0 {
		fmt.Fprintf(&b, "\n%s\n", minutesChart(f.All.Minutes, "tasks that fall due in each "))
	}
	if pace.PerSecond > 0 {
		text := strconv.FormatFloat(pace.PerSecond, 'g', -1, 64)
		if pace.Over > 0 {
			text = strconv.FormatFloat(pace.PerSecond, 'g', 3, 64)
			fmt.Fprintf(&b, "\nin the last %[2]s, live workers completed %[1]s tasks a second\n", text, words.Span(pace.Over))
		} else {
			b.WriteByte('\n')
		}
		if stalled := stalledKinds(f, pace); len(stalled) > 0 {
			fmt.Fprintf(&b, "tasks of these kinds are due, and live workers completed none of them: %s\n", strings.Join(stalled, ", "))
		} else if gone, ok := f.All.Gone(pace.PerSecond); ok {
			fmt.Fprintf(&b, "at %s tasks a second, no due task is left after %s, at %s\n", text, words.Span(gone), f.At.Add(gone).Format(time.DateTime)+" UTC")
		} else {
			fmt.Fprintf(&b, "at %s tasks a second, tasks are still due after %s\n", text, words.Span(time.Duration(len(f.All.Minutes))*time.Minute))
		}
	}
	_, err := io.WriteString(s, b.String())
	return err
}

// peakText says how many fall due in the busiest minute, and when.
func peakText(l ops.Load) string {
	if l.Peak == 0 {
		return "–"
	}
	when := "now"
	if l.PeakAt > 0 {
		when = "in " + words.Span(l.PeakAt)
	}
	return fmt.Sprintf("%s a minute, %s", grouped(l.Peak), when)
}
