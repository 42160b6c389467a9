package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/falldue/falldue"
)

// processCount is how many worker processes run at the same time in the measures
// of several.
const processCount = 8

// processConfig is the argument of a worker process, which is this program, run
// again.
type processConfig struct {
	Engine, DSN string
	// System is the name of the system that works.
	System string
	// Storm makes the process enqueue and delete tasks, too.
	Storm bool
	// Queues and Tenants are as in settings.
	Queues  int
	Tenants bool
	// Every is the time between two reports.
	Every time.Duration
}

// processReport is a line of JSON that a worker process writes at regular intervals. It
// counts from the report before.
type processReport struct {
	Handled  int
	Enqueued int
	Errors   int // that falldue returned to its caller
	Claims   int // claims that found tasks
	Sweeps   int
	// Claiming and Sweeping are how long the database took for these claims and sweeps.
	Claiming, Sweeping time.Duration
	// PeakMB is the peak memory of the process. CPU is the processor time and Allocs the
	// number of allocations of the whole process from the start of the worker until all was
	// settled. Only the last report has them.
	PeakMB float64
	CPU    time.Duration
	Allocs uint64
}

// used returns the processor time, user and system, and the number of allocations of this
// process.
func used() (cpu time.Duration, allocs uint64, err error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), memory.Mallocs, nil
}

// runProcess is the main function of a worker process. It works until its standard
// input ends.
func runProcess(ctx context.Context, argument string) error {
	var cfg processConfig
	if err := json.Unmarshal([]byte(argument), &cfg); err != nil {
		return err
	}
	db := database{server: &server{engine: cfg.Engine}, dsn: cfg.DSN}
	done := deleted
	if cfg.Storm {
		done = keptBriefly
	}
	var handled, enqueued, failed, claims, claiming, sweeps, sweeping atomic.Int64
	hooks := falldue.Hooks{Claim: func(c falldue.StatementStats) {
		if c.Tasks > 0 {
			claims.Add(1)
			claiming.Add(int64(c.Took))
		}
	}, Sweep: func(s falldue.StatementStats) {
		sweeps.Add(1)
		sweeping.Add(int64(s.Took))
	}}
	opens, _, err := choose(cfg.Engine, []string{cfg.System})
	if err != nil {
		return err
	}
	s, err := opens[cfg.System](ctx, db, settings{done: done, queues: cfg.Queues, tenants: cfg.Tenants, hooks: hooks})
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	cpu, allocs, err := used()
	if err != nil {
		return err
	}
	stop, err := s.work(context.WithoutCancel(ctx), func() error { handled.Add(1); return nil })
	if err != nil {
		return err
	}
	enqueueing := make(chan struct{}) // closed when the enqueuer has ended
	go func() {
		defer close(enqueueing)
		for cfg.Storm && ctx.Err() == nil {
			n := 1 + rand.IntN(50)
			if err := s.insert(context.WithoutCancel(ctx), n); err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed.Add(1)
			}
			enqueued.Add(int64(n))
		}
	}()
	out := json.NewEncoder(os.Stdout)
	report := func() processReport {
		return processReport{
			Handled: int(handled.Swap(0)), Enqueued: int(enqueued.Swap(0)), Errors: int(failed.Swap(0)),
			Claims: int(claims.Swap(0)), Claiming: time.Duration(claiming.Swap(0)),
			Sweeps: int(sweeps.Swap(0)), Sweeping: time.Duration(sweeping.Swap(0)),
		}
	}
	for ticks := time.NewTicker(cfg.Every); ctx.Err() == nil; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
		if err := out.Encode(report()); err != nil {
			return err // nobody reads any more
		}
	}
	<-enqueueing
	err = stop()
	endCPU, endAllocs, unknown := used()
	last := report()
	last.PeakMB, last.CPU, last.Allocs = peakMB(), endCPU-cpu, endAllocs-allocs
	return errors.Join(err, unknown, out.Encode(last))
}

// peakMB returns the peak memory of this process, or 0 where it is not known.
func peakMB() float64 {
	var kB float64
	_, _ = fmt.Sscan(field("/proc/self/status", "VmHWM"), &kB) // leaves 0 where there is no such file
	return kB / 1024
}

// processGroup is a group of worker processes on one database.
type processGroup struct {
	reports  chan processReport
	commands []*exec.Cmd
	inputs   []io.Closer
	running  int // processes that have not exited
}

// startProcesses starts n worker processes.
func startProcesses(ctx context.Context, n int, cfg processConfig) (_ *processGroup, err error) {
	cfg.Every = 25 * time.Millisecond
	if n > processCount {
		cfg.Every *= time.Duration(n / 2) // among many processes, frequent reports would slow down the work
	}
	argument, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &processGroup{reports: make(chan processReport, 100*n)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stop(nil))
		}
	}()
	for range n {
		cmd := exec.CommandContext(ctx, program, processArgument, string(argument))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		g.commands, g.inputs, g.running = append(g.commands, cmd), append(g.inputs, in), g.running+1
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var n processReport
				if json.Unmarshal(lines.Bytes(), &n) == nil {
					g.reports <- n
				}
			}
			g.reports <- processReport{Handled: exited}
		}()
	}
	return g, nil
}

// processArgument is the argument that makes this program a worker process. exited
// is the value of Handled in the report that stands for the exit of a process.
const (
	processArgument = "worker-process"
	exited          = -1
)

// stop stops the processes and waits for their exit. It calls each, which may be
// nil, with the reports that arrive meanwhile.
func (g *processGroup) stop(each func(processReport)) (err error) {
	for _, in := range g.inputs {
		_ = in.Close()
	}
	for g.running > 0 {
		r := <-g.reports
		switch {
		case r.Handled == exited:
			g.running--
		case each != nil:
			each(r)
		}
	}
	for _, cmd := range g.commands {
		err = errors.Join(err, cmd.Wait())
	}
	return err
}

// collect calls each with every report until it returns true, or until end. late
// reports whether end came first. The exit of a process is an error.
func (g *processGroup) collect(end <-chan time.Time, each func(processReport) (enough bool)) (late bool, err error) {
	for {
		select {
		case <-end:
			return true, nil
		case r := <-g.reports:
			if r.Handled == exited {
				g.running--
				return false, errors.New("a process exited early")
			}
			if each(r) {
				return false, nil
			}
		}
	}
}

// drainWithProcesses measures how fast n worker processes process config.tasks
// tasks, and the peak memory of the largest of them. Of one process, which may be
// falldue, falldue-metrics, falldue-pgx or raw, it also measures processor time and allocations.
func drainWithProcesses(n int) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		system := nameOf(s)
		if !slices.Contains([]string{tunedName, meteredName, pgxName, rawName}, system) || n > 1 && system != tunedName {
			return nil, errors.ErrUnsupported
		}
		if err := errors.Join(s.insert(ctx, c.tasks), db.analyze(ctx)); err != nil {
			return nil, err
		}
		d, err := timeDrain(ctx, c, db, workers{n: n, system: system})
		v := values{"": perSecond(c.tasks, d.took), fmt.Sprintf("memory_mb_%d", n): d.peak}
		if n == 1 {
			v["client_us"] = float64(d.cpu.Microseconds()) / float64(c.tasks)
			v["client_allocs"] = float64(d.allocs) / float64(c.tasks)
		}
		return v, err
	}
}

// memoryWithBacklog measures the peak memory of a worker that processes tasks
// while many others wait.
func memoryWithBacklog(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	if err := errors.Join(s.insertWaiting(ctx, c.backlog), s.insert(ctx, c.tasks), db.analyze(ctx)); err != nil {
		return nil, err
	}
	d, err := timeDrain(ctx, c, db, workers{n: 1, system: tunedName})
	return values{"": d.peak}, err
}

func isFalldue(s subject) bool { return nameOf(s) == tunedName }

// nameOf returns the name of the system of a subject that is falldue or raw, and "" of
// another one.
func nameOf(s subject) string {
	switch s := s.(type) {
	case *falldueSubject:
		return s.name
	case *raw:
		return rawName
	}
	return ""
}

// workers are the worker processes of a drain.
type workers struct {
	n       int    // how many
	system  string // the system that the processes run
	queues  int    // as in settings
	tenants bool   // as in settings
	warm    int    // how many tasks they process before the drain is measured
	watch   *watch // of the server and of the processes, while they work; nil for none
}

// drained is what a drain by processes came to.
type drained struct {
	tasks    int           // that were measured
	took     time.Duration // from the first of these tasks to the last
	peak     float64       // MB of memory of the largest process
	cpu      time.Duration // processor time of all processes, from the start of their workers to the end
	allocs   uint64        // allocations of all processes meanwhile
	claims   int           // that found tasks
	claiming time.Duration // how long the database took for them
	sweeps   int
	sweeping time.Duration
}

// timeDrain lets worker processes process config.tasks tasks. It measures those after the first workers.warm.
func timeDrain(ctx context.Context, c *config, db database, w workers) (d drained, err error) {
	group, err := startProcesses(ctx, w.n, processConfig{Engine: db.server.engine, DSN: db.dsn, System: w.system, Queues: w.queues, Tenants: w.tenants})
	if err != nil {
		return d, err
	}
	handled, before := 0, 0 // before: when the measurement began
	var begin, end time.Time
	late, err := group.collect(time.After(c.patience), func(r processReport) bool {
		if begin.IsZero() && r.Handled > 0 && handled >= w.warm {
			begin, before = time.Now(), handled
			d.claims, d.claiming, d.sweeps, d.sweeping = 0, 0, 0, 0
			w.watch.begin(ctx, group)
		}
		handled, end = handled+r.Handled, time.Now()
		d.claims, d.claiming = d.claims+r.Claims, d.claiming+r.Claiming
		d.sweeps, d.sweeping = d.sweeps+r.Sweeps, d.sweeping+r.Sweeping
		return handled >= c.tasks
	})
	d.tasks = handled - before
	err = errors.Join(err, w.watch.end())
	if late {
		err = fmt.Errorf("%d of %d tasks handled in %v", handled, c.tasks, c.patience)
	}
	d.took = end.Sub(begin)
	return d, errors.Join(err, group.stop(func(r processReport) {
		d.peak, d.cpu, d.allocs = max(d.peak, r.PeakMB), d.cpu+r.CPU, d.allocs+r.Allocs
	}))
}

// countDeadlocks counts the deadlocks of processes that enqueue, claim, settle and
// delete tasks at the same time, and the errors that falldue returns to its callers.
func countDeadlocks(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	before, err := db.deadlocks(ctx)
	if err != nil {
		return nil, err
	}
	group, err := startProcesses(ctx, processCount, processConfig{Engine: db.server.engine, DSN: db.dsn, System: tunedName, Storm: true})
	if err != nil {
		return nil, err
	}
	var total processReport
	add := func(r processReport) {
		total.Handled, total.Enqueued, total.Errors = total.Handled+r.Handled, total.Enqueued+r.Enqueued, total.Errors+r.Errors
	}
	_, err = group.collect(time.After(c.storm), func(r processReport) bool { add(r); return false })
	if err := errors.Join(err, group.stop(add)); err != nil {
		return nil, err
	}
	after, err := db.deadlocks(ctx)
	return values{
		"": float64(after - before), "storm_errors": float64(total.Errors), "storm_handled": perSecond(total.Handled, c.storm), "storm_enqueued": perSecond(total.Enqueued, c.storm),
	}, err
}

// deadlocks returns how many deadlocks the server has counted: on PostgreSQL in
// this database, on MySQL and MariaDB in all databases, which nobody else may use
// during the measure.
func (db database) deadlocks(ctx context.Context) (n int, err error) {
	query := map[string]string{
		postgres: "select deadlocks from pg_stat_database where datname = '" + db.name + "'",
		mySQL:    "select count from information_schema.innodb_metrics where name = 'lock_deadlocks'",
		mariaDB:  "select variable_value from information_schema.global_status where variable_name = 'Innodb_deadlocks'",
	}[db.server.engine]
	err = db.server.admin.GetContext(ctx, &n, query)
	return n, err
}
