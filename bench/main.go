// Bench measures falldue, other queues and the database itself on one server,
// in one run, alternating between them:
//
//	go run . --engine postgres --dsn postgres://… --peers raw,river --json out.json
//
// It writes docs/benchmarks/records.md, which says what it measures and has the results, and the
// tables of docs/benchmarks/scaling.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config holds the flags of a run.
type config struct {
	engine    string
	dsn       string
	peers     []string
	systems   []string // all if empty
	measures  []string // all if empty
	rounds    int
	tasks     int           // how many are enqueued and processed
	backlog   int           // how many others wait
	while     time.Duration // length of measures that have no number of tasks
	storm     time.Duration // length of the measure deadlocks
	soak      time.Duration // length of a soak, which is run instead of measures
	every     time.Duration // between two samples of a soak
	scaling   []string      // tables of scaling, which are made instead of measures
	processes int           // the most worker processes in them
	roundTrip time.Duration // of a proxy through which each system is measured, too
	silence   time.Duration // before what is measured of an idle worker
	patience  time.Duration // timeout of one run
	json      string
	doc       string
	plot      string
	profile   string
	command   string // the command line of the run, without its files and the server
}

// names is a flag whose value is words separated by commas.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(s string) error {
	*n = strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == processArgument:
		err = runProcess(ctx, os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == proxyArgument:
		err = runProxy(ctx, os.Args[2])
	default:
		err = run(ctx, parse())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse() *config {
	c := &config{}
	flag.StringVar(&c.engine, "engine", postgres, "postgres, mysql, mariadb, sqlite or tidb")
	flag.StringVar(&c.dsn, "dsn", "", "the server, for a user who may create databases (default: the environment's FALLDUE_TEST_<ENGINE>, or one started for the run)")
	flag.Var((*names)(&c.peers), "peers", "systems next to falldue and falldue-default, separated by commas, such as raw,river (default: all of the engine)")
	flag.Var((*names)(&c.systems), "systems", "the systems, separated by commas, instead of --peers")
	flag.Var((*names)(&c.measures), "measures", "measures, separated by commas (default: all)")
	flag.IntVar(&c.rounds, "rounds", 3, "runs of each measure for which a single run is not enough, alternating between the systems")
	flag.IntVar(&c.tasks, "tasks", 100_000, "tasks of one run")
	flag.IntVar(&c.backlog, "backlog", 1_000_000, "other tasks, which wait")
	flag.DurationVar(&c.while, "while", 3*time.Second, "length of one run of measures that have no number of tasks")
	flag.DurationVar(&c.storm, "storm", 2*time.Minute, "length of the measure deadlocks")
	flag.DurationVar(&c.soak, "soak", 0, "instead of measures, run falldue for so long at 1,000 tasks a second, with a twentieth failing, and sample sizes and waits; it prints the medians of the first and of the last ten minutes")
	flag.DurationVar(&c.every, "every", time.Minute, "the time between two samples of --soak")
	flag.Var((*names)(&c.scaling), "scaling", "instead of measures, make tables of how falldue scales, separated by commas: processes, waiting, lanes, queues, tenants, or all; each row of processes and lanes is the median of --rounds drains")
	flag.IntVar(&c.processes, "processes", 32, "the most worker processes of --scaling")
	flag.DurationVar(&c.roundTrip, "round-trip", 0, "measure each system also through a proxy that adds this time to each round trip to the server, half of it in each direction")
	flag.DurationVar(&c.silence, "silence", 15*time.Second, "how long a worker has been idle in the measures first_task_ms and idle_statements_per_minute")
	flag.DurationVar(&c.patience, "patience", 2*time.Minute, "timeout of one run")
	flag.StringVar(&c.json, "json", "", "file to write the results to, as JSON")
	flag.StringVar(&c.doc, "doc", "", "document to write the results into, such as ../docs/benchmarks/records.md")
	flag.StringVar(&c.plot, "plot", "", "file to draw the results into, as SVG")
	flag.StringVar(&c.profile, "profile", "", "file to write a CPU profile of all runs to; with .allocs appended, one of allocations")
	flag.Parse()
	c.command = "go run ."
	flag.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"dsn", "json", "doc", "plot", "profile"}, f.Name) {
			c.command += " --" + f.Name + " " + f.Value.String()
		}
	})
	if c.systems == nil && c.peers != nil {
		c.systems = append([]string{"falldue", "falldue-default"}, c.peers...)
	}
	return c
}

func run(ctx context.Context, c *config) error {
	if systems[c.engine] == nil {
		return fmt.Errorf("engine %q: must be one of %s", c.engine, strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
	}
	opens, order, err := choose(c.engine, c.systems)
	if err != nil {
		return err
	}
	list, err := pick(c.engine, c.measures)
	if err != nil {
		return err
	}
	if c.roundTrip != 0 && (c.roundTrip < 0 || c.engine == sqlite || c.soak > 0 || len(c.scaling) > 0) {
		return fmt.Errorf("--round-trip %v: must be positive, and for measures on an engine with a server", c.roundTrip)
	}
	srv, err := connect(ctx, c.engine, c.dsn)
	if err != nil {
		return err
	}
	defer srv.close()
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", c.engine, srv.version, strings.Join(order, ", "))
	if c.soak > 0 {
		return runSoak(ctx, c, srv)
	}
	if len(c.scaling) > 0 {
		return runScaling(ctx, c, srv)
	}
	if c.roundTrip > 0 {
		if err := srv.startProxy(ctx, c.roundTrip); err != nil {
			return err
		}
	}
	profiling, err := profile(c.profile)
	if err != nil {
		return err
	}
	all, err := measureAll(ctx, c, srv, list, opens, order)
	err = errors.Join(err, profiling())
	if len(all) == 0 {
		return cmp.Or(err, errors.New("nothing was measured: none of the systems supports any of the measures"))
	}
	// Results from before an error or an interrupt are reported too.
	report(os.Stdout, all)
	return errors.Join(err, write(context.WithoutCancel(ctx), c, srv, all))
}

// measureAll runs each measure for one system after the other. A round runs all
// measures, so that each is taken at several times: a machine may be faster at
// one time than at another.
func measureAll(ctx context.Context, c *config, srv *server, list []measure, opens map[string]open, order []string) (all results, err error) {
	for round := range c.rounds {
		for _, m := range list {
			if m.single && round > 0 {
				continue
			}
			for _, name := range order {
				for _, far := range c.distances() {
					got, err := measureOnce(ctx, c, srv, m, opens[name], far != "")
					if errors.Is(err, errors.ErrUnsupported) {
						continue
					}
					if err != nil {
						return all, fmt.Errorf("%s of %s%s: %w", m.name, name, far, err)
					}
					for _, key := range slices.Sorted(maps.Keys(got)) {
						measure, system, _ := strings.Cut(key, " ")
						all.add(c.engine, cmp.Or(measure, m.name), cmp.Or(system, name)+far, got[key])
					}
					fmt.Fprintf(os.Stderr, "%s %d %s%s %s\n", m.name, round+1, name, far, got)
				}
			}
		}
	}
	return all, nil
}

// distances returns what follows the names of systems, for each distance from the server: nothing, and the round
// trip of the proxy if there is one.
func (c *config) distances() []string {
	if c.roundTrip == 0 {
		return []string{""}
	}
	return []string{"", farMark + c.roundTrip.String()}
}

// write stores the results in the files that were asked for.
func write(ctx context.Context, c *config, srv *server, all results) error {
	if c.json != "" {
		if err := all.write(c.json); err != nil {
			return err
		}
	}
	if c.plot != "" {
		if err := saveFigure(c.plot, drawRates(titleOf(c.engine), all)); err != nil {
			return err
		}
	}
	if c.doc == "" {
		return nil
	}
	where, err := settingOf(ctx, c, srv)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Command = c.command
	}
	return writeDoc(c.doc, c.engine, part{where, all})
}

// measureOnce measures one system on its own new database, through the proxy if far is set.
func measureOnce(ctx context.Context, c *config, srv *server, m measure, open open, far bool) (values, error) {
	db, err := srv.create(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.drop(context.WithoutCancel(ctx)) }()
	db.counts = m.settings.counts
	if far {
		if db, err = db.through(srv.proxy); err != nil {
			return nil, err
		}
	}
	s, err := open(ctx, db, m.settings)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return m.run(ctx, c, db, s)
}

// profile starts a CPU profile and returns the function that ends it.
func profile(path string) (func() error, error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		allocs, err := os.Create(path + ".allocs")
		if err != nil {
			return err
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), cpu.Close())
	}, nil
}
