package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/falldue/falldue/internal/chart"
)

// soakColumn is a figure of a sample, as tables and plots have it.
type soakColumn struct {
	name  string
	value func(soakSample) float64
}

var soakColumns = []soakColumn{
	{"runs", func(s soakSample) float64 { return float64(s.Started) }},
	{"p50 ms", func(s soakSample) float64 { return s.P50 }},
	{"p99 ms", func(s soakSample) float64 { return s.P99 }},
	{"tables MB", func(s soakSample) float64 { return s.TableMB }},
	{"indexes MB", func(s soakSample) float64 { return s.IndexMB }},
	{"rows", func(s soakSample) float64 { return float64(s.Rows) }},
	{"dead rows", func(s soakSample) float64 { return float64(s.DeadRows) }},
	{"free MB", func(s soakSample) float64 { return s.FreeMB }},
	{"memory MB", func(s soakSample) float64 { return s.MemoryMB }},
	{"heap MB", func(s soakSample) float64 { return s.HeapMB }},
	{"goroutines", func(s soakSample) float64 { return float64(s.Goroutines) }},
	{"overdue", func(s soakSample) float64 { return float64(s.Overdue) }},
}

// soakRecord is the result of a soak, and its file next to the document.
type soakRecord struct {
	Engine  string        `json:"engine"`
	Setting setting       `json:"setting"`
	Command string        `json:"command,omitempty"`
	Note    string        `json:"note,omitempty"` // what else a reader should know
	Length  time.Duration `json:"length_ns"`
	// Window is of what part at the begin and at the end Figures has medians.
	Window  time.Duration `json:"window_ns"`
	Figures []soakFigure  `json:"figures"`
	Samples []soakSample  `json:"samples,omitempty"`
}

// soakFigure is a column of the samples: its medians at the begin and at the end of a soak.
type soakFigure struct {
	Name  string  `json:"name"`
	First float64 `json:"first"`
	Last  float64 `json:"last"`
}

// soakWindow is the part of a soak whose medians are compared, unless it is shorter than two
// of them: then it is half of it.
const soakWindow = 10 * time.Minute

// newSoakRecord makes a record of samples, of which there is one at least.
func newSoakRecord(engine string, every time.Duration, samples []soakSample) soakRecord {
	n := max(1, min(int(soakWindow/every), len(samples)/2))
	r := soakRecord{Engine: engine, Samples: samples, Length: time.Duration(len(samples)) * every, Window: time.Duration(n) * every}
	for _, c := range soakColumns {
		median := func(part []soakSample) float64 {
			var list []float64
			for _, s := range part {
				list = append(list, c.value(s))
			}
			slices.Sort(list)
			return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
		}
		r.Figures = append(r.Figures, soakFigure{c.name, median(samples[:n]), median(samples[len(samples)-n:])})
	}
	return r
}

// table has the medians.
func (r soakRecord) table() string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"median", fmt.Sprint("first ", r.Window), fmt.Sprint("last ", r.Window)})
	for _, f := range r.Figures {
		t.AppendRow(table.Row{f.Name, number(f.First), number(f.Last)})
	}
	return t.Render()
}

// Rises names the figures that are higher at the end than at the begin by a tenth or more.
func (r soakRecord) Rises() string {
	var list []string
	for _, f := range r.Figures {
		if f.Last > f.First && f.Last >= 1.1*f.First {
			list = append(list, fmt.Sprintf("%s (%s, then %s)", f.Name, number(f.First), number(f.Last)))
		}
	}
	if len(list) == 0 {
		return "no figure"
	}
	return strings.Join(list, ", ")
}

// Title is the engine's name in documents.
func (r soakRecord) Title() string { return titleOf(r.Engine) }

// runSoak makes a soak, prints its samples and their medians, and writes them into the
// files that were asked for.
func runSoak(ctx context.Context, c *config, srv *server) error {
	if c.every <= 0 || c.soak < c.every {
		return fmt.Errorf("--soak %v takes no sample with --every %v; it takes one at least", c.soak, c.every)
	}
	db, err := srv.create(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.drop(context.WithoutCancel(ctx)) }()
	samples, err := soak(ctx, db, c.soak, c.every)
	if len(samples) == 0 {
		return cmp.Or(err, errors.New("the soak ended before its first sample"))
	}
	fmt.Println(soakTable(samples))
	r := newSoakRecord(c.engine, c.every, samples)
	r.Command = c.command
	fmt.Println(r.table())
	var failed error
	if r.Setting, failed = settingOf(context.WithoutCancel(ctx), c, srv); failed != nil {
		return errors.Join(err, failed)
	}
	r.Setting.Tasks, r.Setting.Backlog = 0, 0 // a soak has neither
	if c.json != "" {
		err = errors.Join(err, r.write(c.json))
	}
	if c.plot != "" {
		err = errors.Join(err, saveFigure(c.plot, drawSoak(r.Title(), samples)))
	}
	if c.doc != "" {
		err = errors.Join(err, writeSoakDoc(c.doc, r))
	}
	return err
}

// write stores the record as JSON.
func (r soakRecord) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// soakTable draws up to twelve of the samples.
func soakTable(samples []soakSample) string {
	t := table.NewWriter()
	header := table.Row{"minute"}
	for _, c := range soakColumns {
		header = append(header, c.name)
	}
	t.AppendHeader(header)
	step := max(1, len(samples)/12)
	for i := step - 1; i < len(samples); i += step {
		row := table.Row{number(samples[i].Minute)}
		for _, c := range soakColumns {
			row = append(row, number(c.value(samples[i])))
		}
		t.AppendRow(row)
	}
	return t.Render()
}

// soakPlots are the panels of the picture of a soak, each with some of the columns.
var soakPlots = []struct {
	title   string
	unit    chart.Unit
	columns []string
}{
	{"Wait from enqueue to start", chart.Seconds, []string{"p50 ms", "p99 ms"}},
	{"Size on disk, MB", chart.Numbers, []string{"tables MB", "indexes MB", "free MB"}},
	{"Rows", chart.Numbers, []string{"rows", "dead rows"}},
	{"Memory of the process, MB", chart.Numbers, []string{"memory MB", "heap MB"}},
	{"Goroutines", chart.Count, []string{"goroutines"}},
	{"Tasks started in each sample", chart.Count, []string{"runs"}},
	{"Tasks due for more than a minute", chart.Count, []string{"overdue"}},
}

// drawSoak draws the samples over the time.
func drawSoak(title string, samples []soakSample) chart.Figure {
	f := chart.Figure{Title: fmt.Sprintf("%s tasks a second on %s", number(soakRate), title), Note: "Over the time since the beginning."}
	for _, part := range soakPlots {
		plot := chart.Plot{Title: part.title, X: chart.Axis{Unit: chart.Seconds}, Y: chart.Axis{Unit: part.unit}, Height: 90, Empty: "none"}
		for _, name := range part.columns {
			column := soakColumns[slices.IndexFunc(soakColumns, func(c soakColumn) bool { return c.name == name })]
			series, shown := chart.Series{Name: strings.TrimSuffix(strings.TrimSuffix(name, " ms"), " MB")}, false
			for _, s := range samples {
				value := column.value(s)
				if shown = shown || value != 0; part.unit == chart.Seconds {
					value /= 1000
				}
				series.Points = append(series.Points, chart.Point{X: 60 * s.Minute, Y: value})
			}
			if shown { // not every engine knows each figure
				plot.Series = append(plot.Series, series)
			}
		}
		f.Panels = append(f.Panels, plot)
	}
	return f
}
