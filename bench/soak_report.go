package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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
		err = errors.Join(err, plotSoak(c.plot, c.engine, samples))
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

// soakPlots are the plots of a soak, each with some of the columns.
var soakPlots = [][]string{{"p50 ms", "p99 ms"}, {"tables MB", "indexes MB", "free MB"}, {"rows", "dead rows"}, {"memory MB", "heap MB"}, {"goroutines"}, {"runs", "overdue"}}

// plotSoak draws the samples over the minutes.
func plotSoak(path, engine string, samples []soakSample) error {
	const columns = 2
	var rows [][]*plot.Plot
	for i, names := range soakPlots {
		p := plot.New()
		p.X.Label.Text, p.Y.Min, p.Legend.Top = "minute", 0, true
		p.Title.Text = strings.Join(names, ", ")
		if i == 0 {
			p.Title.Text = engine + ": " + p.Title.Text
		}
		p.Add(horizontal())
		for j, name := range names {
			column := soakColumns[slices.IndexFunc(soakColumns, func(c soakColumn) bool { return c.name == name })]
			points := make(plotter.XYs, len(samples))
			for k, s := range samples {
				points[k] = plotter.XY{X: s.Minute, Y: column.value(s)}
				p.Y.Max = max(p.Y.Max, 1.3*points[k].Y)
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = plotutil.Color(j), vg.Points(1.5)
			p.Add(line)
			p.Legend.Add(name, line)
		}
		p.Y.Tick.Marker = thousands{}
		if i%columns == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	canvas, err := draw.NewFormattedCanvas(vg.Points(720), vg.Points(600), strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return err
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: columns, PadX: vg.Points(12), PadY: vg.Points(12)}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		for j, cell := range row {
			rows[i][j].Draw(cell)
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return errors.Join(err, file.Close())
}
