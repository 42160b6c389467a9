package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

const (
	// soakRate is how many tasks per second come in a soak, soakBatch in each call.
	soakRate, soakBatch = 1000, 10
	// soakRetention is how long tasks are kept that are done.
	soakRetention = 2 * time.Minute
	// soakEvery is the time between two samples.
	soakEvery = time.Minute
)

// soakPolicy is the policy of the tasks of a soak. One in twenty attempts fails.
var soakPolicy = backoff.ParseDeferred("delay 5s * n; jitter 5s")

// soakSample is what a soak records each minute.
type soakSample struct {
	Minute     int     `json:"minute"`
	Started    int     `json:"started"`    // runs since the sample before
	P50        float64 `json:"p50_ms"`     // from before the enqueue to the start of the first attempt
	P99        float64 `json:"p99_ms"`     //
	TableMB    float64 `json:"table_mb"`   // of all of falldue's tables
	IndexMB    float64 `json:"index_mb"`   //
	Rows       int     `json:"rows"`       // about, as the server says
	DeadRows   int     `json:"dead_rows"`  // row versions that nobody needs, as the server says
	MemoryMB   float64 `json:"memory_mb"`  // of this process
	HeapMB     float64 `json:"heap_mb"`    // of this process, in use
	Goroutines int     `json:"goroutines"` // of this process
	Overdue    int     `json:"overdue"`    // tasks that have been due for more than a minute
}

// soak runs a worker for as long as length says, while tasks come at a steady rate, and
// returns a sample of each minute.
func soak(ctx context.Context, db database, length time.Duration) (samples []soakSample, err error) {
	s, err := openFalldue(tuned)(ctx, db, settings{notify: true, done: keptForMinutes})
	if err != nil {
		return nil, err
	}
	defer s.close()
	f := s.(*falldueSubject)
	kind := falldue.NewKind[time.Time]("soak", falldue.KindConfig{Policy: soakPolicy})
	var mu sync.Mutex
	var waits []time.Duration
	started := 0
	falldue.Handle(f.worker, kind, func(_ context.Context, t falldue.Task[time.Time]) error {
		mu.Lock()
		defer mu.Unlock()
		if started++; t.Attempt == 1 {
			waits = append(waits, time.Since(t.Args))
		}
		if rand.N(20) == 0 {
			return errHandler
		}
		return nil
	})
	stop, err := startWorker(ctx, f.worker.Run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ctx, cancel := context.WithTimeout(ctx, length+soakEvery/2)
	defer cancel()
	enqueuing := make(chan error, 1)
	go func() { enqueuing <- soakEnqueue(ctx, f.producer, kind) }()
	minute := time.NewTicker(soakEvery)
	defer minute.Stop()
	for len(samples) < int(length/soakEvery) {
		select {
		case err := <-enqueuing:
			return samples, err
		case <-minute.C:
		}
		mu.Lock()
		one := soakSample{Minute: len(samples) + 1, Started: started}
		list := waits
		started, waits = 0, nil
		mu.Unlock()
		if len(list) == 0 {
			return samples, fmt.Errorf("no task started in minute %d", one.Minute)
		}
		slices.Sort(list)
		one.P50, one.P99 = milliseconds(list[len(list)/2]), milliseconds(list[len(list)*99/100])
		if err := one.measure(ctx, f); err != nil {
			return samples, err
		}
		samples = append(samples, one)
		fmt.Fprintf(os.Stderr, "%+v\n", one)
	}
	cancel()
	return samples, <-enqueuing
}

// soakEnqueue stores tasks at a steady rate until ctx ends.
func soakEnqueue(ctx context.Context, q *falldue.Queue, kind falldue.Kind[time.Time]) error {
	return loops(ctx, 2, func(ctx context.Context) error {
		tick := time.NewTicker(2 * soakBatch * time.Second / soakRate)
		defer tick.Stop()
		args := make([]time.Time, soakBatch)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for i := range args {
				args[i] = time.Now()
			}
			if _, err := kind.EnqueueMany(context.WithoutCancel(ctx), q, args, nil); err != nil {
				return err
			}
		}
	})
}

// soakSizes query the sizes of tables and indexes in bytes, and the numbers of rows and of
// dead rows.
var soakSizes = map[string]string{
	postgres: `select sum(pg_table_size(relid)), sum(pg_indexes_size(relid)), sum(n_live_tup), sum(n_dead_tup) from pg_stat_user_tables where relname like 'falldue%'`,
	mySQL: `select sum(data_length), sum(index_length), sum(table_rows), (select count from information_schema.innodb_metrics where name = 'trx_rseg_history_len')
		from information_schema.tables where table_schema = database() and table_name like 'falldue%'`,
	sqlite: `select page_count * page_size, 0, (select max(rowid) - min(rowid) from falldue_tasks), 0 from pragma_page_count, pragma_page_size`,
}

// measure fills in all but the waits.
func (s *soakSample) measure(ctx context.Context, f *falldueSubject) error {
	query, ok := soakSizes[f.engine]
	if !ok {
		query = soakSizes[mySQL]
	}
	if f.engine != postgres && f.engine != sqlite {
		if _, err := f.pools[1].ExecContext(ctx, "analyze table falldue_tasks"); err != nil { // or the sizes are old
			return err
		}
	}
	var tables, indexes, rows, dead float64
	if err := f.pools[1].QueryRowContext(ctx, query).Scan(&tables, &indexes, &rows, &dead); err != nil {
		return err
	}
	const mb = 1 << 20
	s.TableMB, s.IndexMB, s.Rows, s.DeadRows = tables/mb, indexes/mb, int(rows), int(dead)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.HeapMB, s.Goroutines = float64(memory.HeapAlloc)/mb, runtime.NumGoroutine()
	var kB float64
	if _, err := fmt.Sscan(field("/proc/self/status", "VmRSS"), &kB); err == nil {
		s.MemoryMB = kB / 1024
	}
	overdue, err := f.worker.Overdue(ctx)
	for _, o := range overdue {
		s.Overdue += o.Tasks
	}
	return err
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

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
	{"memory MB", func(s soakSample) float64 { return s.MemoryMB }},
	{"heap MB", func(s soakSample) float64 { return s.HeapMB }},
	{"goroutines", func(s soakSample) float64 { return float64(s.Goroutines) }},
	{"overdue", func(s soakSample) float64 { return float64(s.Overdue) }},
}

// runSoak makes a soak, prints its samples, and writes them into the files that were
// asked for.
func runSoak(ctx context.Context, c *config, srv *server) error {
	db, err := srv.create(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.drop(context.WithoutCancel(ctx)) }()
	samples, err := soak(ctx, db, c.soak)
	if len(samples) == 0 {
		return cmp.Or(err, errors.New("a soak takes at least a minute"))
	}
	fmt.Println(soakTable(samples))
	if c.json != "" {
		text, failed := json.MarshalIndent(samples, "", "  ")
		err = errors.Join(err, failed, os.WriteFile(c.json, append(text, '\n'), 0o644))
	}
	if c.plot != "" {
		err = errors.Join(err, plotSoak(c.plot, c.engine, samples))
	}
	return err
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
		row := table.Row{samples[i].Minute}
		for _, c := range soakColumns {
			row = append(row, number(c.value(samples[i])))
		}
		t.AppendRow(row)
	}
	return t.Render()
}

// soakPlots are the plots of a soak, each with some of the columns.
var soakPlots = [][]string{{"p50 ms", "p99 ms"}, {"tables MB", "indexes MB"}, {"rows", "dead rows"}, {"memory MB", "heap MB"}, {"goroutines"}, {"runs", "overdue"}}

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
				points[k] = plotter.XY{X: float64(s.Minute), Y: column.value(s)}
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
