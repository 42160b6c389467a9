package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
)

// scalingTable is a table that shows how falldue scales in one dimension.
type scalingTable struct {
	name   string
	header table.Row
	// rows measures the rows of the table, and calls add with each.
	rows func(ctx context.Context, c *config, srv *server, add func(cells ...any)) error
}

// scalingTables lists the tables, in the order in which they are made.
var scalingTables = []scalingTable{
	{"processes", table.Row{"worker processes", "tasks/s", "claims/s", "tasks/claim", "ms/claim", "server CPU", "workers' CPU", "connections", "what sessions do, on average"}, scaleProcesses},
	{"waiting", table.Row{"waiting tasks", "ms/claim", "ms/sweep", "tasks/s"}, scaleWaiting},
	{"lanes", table.Row{"lanes", "tasks/s", "claims/s", "tasks/claim", "ms/claim", "worker memory, MB"}, scaleLanes},
	{"queues", table.Row{"queues with tasks", "a worker on", "tasks/s", "claims/s", "worker memory, MB", "connections", "idle statements/s"}, scaleQueues},
	{"tenants", table.Row{"tenants", "tasks/s", "claims/s", "tasks/claim", "ms/claim", "worker memory, MB", "idle statements/s", "ms to start a new task"}, scaleTenants},
}

// allTables stands for all of scalingTables.
const allTables = "all"

// pickTables returns the named tables.
func pickTables(names []string) (list []scalingTable, err error) {
	known := []string{allTables}
	for _, t := range scalingTables {
		known = append(known, t.name)
		if slices.Contains(names, allTables) || slices.Contains(names, t.name) {
			list = append(list, t)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("scaling %q: must be one of %s", name, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// runScaling makes the tables that were asked for, prints them, and writes them into the
// document if one was named.
func runScaling(ctx context.Context, c *config, srv *server) error {
	list, err := pickTables(c.scaling)
	if err != nil {
		return err
	}
	for _, t := range list {
		w := table.NewWriter()
		w.AppendHeader(t.header)
		columns := []table.ColumnConfig{}
		for i := range t.header {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
		w.SetColumnConfigs(columns)
		err := t.rows(ctx, c, srv, func(cells ...any) {
			for i, cell := range cells {
				switch v := cell.(type) {
				case float64:
					cells[i] = number(v)
				case int:
					cells[i] = number(float64(v))
				}
			}
			fmt.Fprintln(os.Stderr, append([]any{t.name}, cells...)...)
			w.AppendRow(cells)
		})
		w.SetStyle(table.StyleRounded)
		w.Style().Format.Header = text.FormatDefault
		fmt.Println(w.Render()) // what was measured before an error, too
		if err != nil {
			return fmt.Errorf("scaling %s: %w", t.name, err)
		}
		if c.doc != "" {
			if err := writeScaling(ctx, c, srv, t.name, w.RenderMarkdown()); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeScaling puts a table into the document, with where and by what it was measured.
func writeScaling(ctx context.Context, c *config, srv *server, name, rows string) error {
	where, err := settingOf(ctx, c, srv)
	if err != nil {
		return err
	}
	document, err := os.ReadFile(c.doc)
	if err != nil {
		return err
	}
	changed, err := replaceBlock(string(document), c.engine+" "+name, fmt.Sprintf("%s %s; %s; %s tasks%s; %s\n\n%#q\n\n%s", titleOf(c.engine), where.Server, where.Machine, number(float64(c.tasks)), medianOf(c, name), where.Date, c.command, rows))
	if err != nil {
		return fmt.Errorf("%s: %w", c.doc, err)
	}
	return os.WriteFile(c.doc, []byte(changed), 0o644)
}

// medianOf says how many drains each row of a table is the median of.
func medianOf(c *config, table string) string {
	if c.rounds > 1 && (table == "processes" || table == "lanes") {
		return fmt.Sprintf(", the median of %d drains", c.rounds)
	}
	return ""
}

// replaceBlock replaces what a document has between the comments "name" and "end".
func replaceBlock(document, name, block string) (string, error) {
	begin := "<!-- " + name + " -->\n"
	const end = "<!-- end -->\n"
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return "", fmt.Errorf("no line %q", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("no line %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return before + begin + block + "\n" + end + after, nil
}

// onNewDatabase calls measure with falldue on a new database.
func onNewDatabase(ctx context.Context, srv *server, s settings, measure func(database, *falldueSubject) error) error {
	db, err := srv.create(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.drop(context.WithoutCancel(ctx)) }()
	db.counts = s.counts
	opened, err := openFalldue(tuned)(ctx, db, s)
	if err != nil {
		return err
	}
	defer opened.close()
	return measure(db, opened.(*falldueSubject))
}

// claimsPerSecond, perClaim, claimTime and sweepTime are what tables say of the claims and
// sweeps of a drain; times in milliseconds.
func (d drained) claimsPerSecond() float64 { return perSecond(d.claims, d.took) }

func (d drained) perClaim(tasks int) float64 { return float64(tasks) / float64(max(1, d.claims)) }

func (d drained) claimTime() float64 { return milliseconds(d.claiming) / float64(max(1, d.claims)) }

func (d drained) sweepTime() float64 { return milliseconds(d.sweeping) / float64(max(1, d.sweeps)) }

// cores says how many cores were busy on average, or nothing where that is not known.
func cores(used, of time.Duration) any {
	if used == 0 {
		return ""
	}
	return used.Seconds() / of.Seconds()
}

// medianDrain calls measure, which drains tasks on a new database, config.rounds times. It
// returns the one that took the median time, with all that was measured of it.
func medianDrain[D interface{ duration() time.Duration }](c *config, measure func() (D, error)) (median D, err error) {
	var list []D
	for range max(1, c.rounds) {
		d, err := measure()
		if err != nil {
			return median, err
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b D) int { return cmp.Compare(a.duration(), b.duration()) })
	return list[len(list)/2], nil
}

func (d drained) duration() time.Duration { return d.took }

// watchedDrain is a drain and what was watched meanwhile.
type watchedDrain struct {
	drained
	*watch
}

// scaleProcesses drains the same tasks by more and more worker processes. It measures the second half of each drain: in
// the first one, processes start, open their connections and prepare their statements.
func scaleProcesses(ctx context.Context, c *config, srv *server, add func(...any)) error {
	for n := 1; n <= c.processes; n *= 2 {
		d, err := medianDrain(c, func() (d watchedDrain, err error) {
			err = onNewDatabase(ctx, srv, settings{}, func(db database, f *falldueSubject) error {
				if err := errors.Join(f.insert(ctx, c.tasks), db.analyze(ctx)); err != nil {
					return err
				}
				d.watch = &watch{db: db}
				d.drained, err = timeDrain(ctx, c, db, workers{n: n, system: tunedName, warm: c.tasks / 2, watch: d.watch})
				return err
			})
			return d, err
		})
		if err != nil {
			return fmt.Errorf("%d processes: %w", n, err)
		}
		add(n, perSecond(d.tasks, d.took), d.claimsPerSecond(), d.perClaim(d.tasks), d.claimTime(),
			cores(d.server, d.took), cores(d.clients, d.took), d.connections, d.doing.String())
	}
	return nil
}

// scaleWaiting claims and drains due tasks while more and more others wait.
func scaleWaiting(ctx context.Context, c *config, srv *server, add func(...any)) error {
	return onNewDatabase(ctx, srv, settings{}, func(db database, f *falldueSubject) error {
		pool := f.pools[0]
		server, err := dialect.Probe(ctx, pool)
		if err != nil {
			return err
		}
		stored := 0
		for n := 0; n <= c.backlog; n = max(100_000, 10*n) {
			if err := errors.Join(f.insertWaiting(ctx, n-stored), f.insert(ctx, c.tasks), db.analyze(ctx)); err != nil {
				return err
			}
			stored = n
			claim, err := medianTime(ctx, pool, func(ctx context.Context, tx *sqlx.Tx) error { return claimByLane(ctx, tx, server) })
			if err != nil {
				return err
			}
			d, err := timeDrain(ctx, c, db, workers{n: 1, system: tunedName})
			if err != nil {
				return err
			}
			add(n, claim, d.sweepTime(), perSecond(c.tasks, d.took))
		}
		return nil
	})
}

// scaleLanes drains tasks of more and more lanes.
func scaleLanes(ctx context.Context, c *config, srv *server, add func(...any)) error {
	for _, lanes := range []int{1, 1000, 50_000} {
		d, err := medianDrain(c, func() (d drained, err error) {
			err = onNewDatabase(ctx, srv, settings{}, func(db database, f *falldueSubject) error {
				if err := errors.Join(f.insertLanes(ctx, c.tasks, lanes), db.analyze(ctx)); err != nil {
					return err
				}
				d, err = timeDrain(ctx, c, db, workers{n: 1, system: tunedName})
				return err
			})
			return d, err
		})
		if err != nil {
			return fmt.Errorf("%d lanes: %w", lanes, err)
		}
		add(lanes, perSecond(c.tasks, d.took), d.claimsPerSecond(), d.perClaim(c.tasks), d.claimTime(), d.peak)
	}
	return nil
}

// byPattern replaces a number of queues: the worker runs all queues that match a pattern.
const byPattern = -1

// manyQueues is the most queues that there are in scaleQueues.
const manyQueues = 1000

// scaleQueues drains tasks of one queue and of more and more, by a worker on one of them, on all, and on a pattern.
func scaleQueues(ctx context.Context, c *config, srv *server, add func(...any)) error {
	for _, row := range []struct {
		filled int
		works  string
		queues int // of the worker; if it works on others, no task is in the default queue
	}{
		{1, "that one", 0},
		{10, "all", 10},
		{10, "a pattern", byPattern},
		{300, "all", 300},
		{300, "a pattern", byPattern},
		{500, "all", 500},
		{500, "a pattern", byPattern},
		{manyQueues, "one of them", 0},
		{manyQueues, "all", manyQueues},
		{manyQueues, "a pattern", byPattern},
	} {
		err := onNewDatabase(ctx, srv, settings{queues: row.queues, counts: true}, func(db database, f *falldueSubject) error {
			var err error
			if row.filled > 1 {
				err = f.insertQueues(ctx, c.tasks, row.filled)
			}
			if row.queues == 0 {
				err = errors.Join(err, f.insert(ctx, c.tasks))
			}
			if err := errors.Join(err, db.analyze(ctx)); err != nil {
				return err
			}
			w := &watch{db: db}
			d, err := timeDrain(ctx, c, db, workers{n: 1, system: tunedName, queues: row.queues, watch: w})
			if err != nil {
				return err
			}
			perMinute, err := idleStatements(ctx, c, db, f)
			if err != nil {
				return err
			}
			add(row.filled, row.works, perSecond(c.tasks, d.took), d.claimsPerSecond(), d.peak, w.connections, perMinute/60)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d queues, a worker on %s: %w", row.filled, row.works, err)
		}
	}
	return nil
}

// insertQueues stores n due tasks of so many queues.
func (f *falldueSubject) insertQueues(ctx context.Context, n, queues int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, updated_at, created_at, payload)
		select 'queue.' || (i %%%% %d), 'bench', %%[2]s, %%[1]s, '%s'`, queues, encoded))
}
