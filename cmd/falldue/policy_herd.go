package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

func policyHerdCommand() *cobra.Command {
	var o ops.Outage
	var asJSON bool
	var picture pictureFlags
	cmd := &cobra.Command{
		Use:   "herd FORMULA...",
		Short: "Show the retry load after tasks fail at the same time",
		Long: "Show the load of retries after tasks fail at the same time and their retries fail,\n" +
			"too, with and without the policy's jitter. The numbers assume that handlers take no\n" +
			"time. The chart shows the load with jitter.\n\n" + policyHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if picture.set() {
				if err := picture.saveHerds(cmd.Context(), args, o); err != nil {
					return err
				}
			}
			for i, text := range args {
				h, err := herdsOf(cmd.Context(), text, o)
				if err != nil {
					return err
				}
				if asJSON {
					err = h.printJSON(cmd.OutOrStdout())
				} else {
					err = h.print(screenOf(cmd), i > 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	countVar(cmd.Flags(), &o.Failures, "failures", 100, 1_000_000, "number of tasks that fail")
	countVar(cmd.Flags(), &o.Retries, "retries", 5, 1000, "number of retries of each task")
	boundedSpanVar(cmd.Flags(), &o.Bucket, "bucket", time.Minute, time.Millisecond, longestLimit, "length of the intervals in which retries are counted")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "seed of the random jitter: the same seed gives the same output")
	picture.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per policy")
	cmd.ValidArgsFunction = presetArguments(0, 0)
	return cmd
}

// saveHerds draws the herds of policies, one below the other.
func (f *pictureFlags) saveHerds(ctx context.Context, policies []string, o ops.Outage) error {
	var list []chart.HerdOf
	for _, text := range policies {
		h, err := herdsOf(ctx, text, o)
		if err != nil {
			return err
		}
		list = append(list, h.picture())
	}
	return f.save(chart.Herd(list...))
}

// herds are the loads of a policy with its jitter and without.
type herds struct {
	policy        string
	with, without ops.Herd
}

func herdsOf(ctx context.Context, text string, o ops.Outage) (h herds, err error) {
	policy, err := backoff.Parse(text)
	if err != nil {
		return h, mistake(err)
	}
	h.policy = text
	if h.with, err = ops.Stampede(ctx, policy, o); err != nil {
		return h, mistake(err)
	}
	o.Bucket = h.with.Bucket
	h.without, err = ops.Stampede(ctx, policy.WithJitter("0"), o)
	return h, mistake(err)
}

func (h herds) printJSON(out io.Writer) error {
	type load struct {
		Bucket  float64 `json:"bucket_seconds"`
		Load    []int   `json:"load"`
		Peak    int     `json:"peak"`
		PeakAt  float64 `json:"peak_at_seconds"`
		Idle    float64 `json:"idle"`
		GivenUp int     `json:"given_up"`
	}
	of := func(h ops.Herd) load {
		return load{h.Bucket.Seconds(), h.Load, h.Peak, h.PeakAt.Seconds(), h.Idle, h.GivenUp}
	}
	return json.NewEncoder(out).Encode(struct {
		Policy  string `json:"policy"`
		With    load   `json:"with_jitter"`
		Without load   `json:"without_jitter"`
	}{h.policy, of(h.with), of(h.without)})
}

func (h herds) print(s screen, another bool) error {
	text := h.policy + "\n"
	if another {
		text = "\n" + text
	}
	if _, err := io.WriteString(s, text); err != nil {
		return err
	}
	var rows [][]string
	for _, row := range []struct {
		name string
		ops.Herd
	}{{"with jitter", h.with}, {"without jitter", h.without}} {
		last := time.Duration(len(row.Load)) * row.Bucket
		rows = append(rows, []string{row.name, peakOf(row.Herd), words.Span(row.PeakAt), idleOf(row.Herd), "within " + words.Span(last), strconv.Itoa(row.GivenUp)})
	}
	if err := s.table([]column{{name: ""}, {name: "peak"}, {name: "begins after"}, {name: "idle"}, {name: "last retry"}, {name: "given up"}}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s, loadChart(h.with, "retries in "))
	return err
}

func peakOf(h ops.Herd) string { return fmt.Sprintf("%d in %s", h.Peak, words.Span(h.Bucket)) }
func idleOf(h ops.Herd) string { return fmt.Sprintf("%.0f %%", 100*h.Idle) }

// chartWidth is the greatest number of columns of a chart.
const chartWidth = 60

// loadChart draws the load of a herd. Each step is the sum of several intervals. If there are
// few steps, each is several columns wide: scaling to a given width would interpolate between
// the steps, and cut off peaks.
func loadChart(h ops.Herd, caption string) string {
	each := (len(h.Load) + chartWidth - 1) / chartWidth
	steps := make([]float64, (len(h.Load)+each-1)/each)
	for i, n := range h.Load {
		steps[i/each] += float64(n)
	}
	var columns []float64
	for _, n := range steps {
		columns = append(columns, slices.Repeat([]float64{n}, chartWidth/len(steps))...)
	}
	width := time.Duration(each) * h.Bucket
	return asciigraph.Plot(columns, asciigraph.Height(8), asciigraph.LowerBound(0), asciigraph.Precision(0),
		asciigraph.XAxisRange(0, (time.Duration(len(steps))*width).Seconds()), asciigraph.XAxisValueFormatter(inSeconds),
		asciigraph.Caption(caption+words.Span(width)))
}
