// Run is the program of the fault suite. It runs worker and enqueuer processes on a
// real database, injects faults from a seed, and checks at the end what became of the
// tasks.
//
//	run [-engine postgres,mysql,mariadb,sqlite,galera] [-seed N] [-minutes M] [-faults NAMES] [-pooler]
//
// Its last line for each engine is the verdict. The exit status is 0 if nothing is
// wrong on any engine. The folder with the histories stays if something is.
//
// If the environment has the DSN of a server, the run uses that server, and does not
// restart it. Otherwise it starts a server of its own from the programs of this
// machine, which it can restart and kill, or uses one that testdb finds.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/falldue/falldue/faults"
	"github.com/falldue/falldue/internal/testdb"
)

func main() {
	if len(os.Args) > 2 && !strings.HasPrefix(os.Args[1], "-") {
		// One of the processes that this program starts.
		if err := faults.Play(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	stop()
	if !ok {
		os.Exit(1)
	}
}

// run runs the suite on each engine, and reports whether nothing was wrong.
func run(ctx context.Context) (ok bool, err error) {
	engines := flag.String("engine", cmp.Or(os.Getenv(testdb.EnginesVariable), "postgres,mariadb,sqlite"), "the engines, one after the other, separated by commas")
	seed := flag.Uint64("seed", rand.Uint64(), "what all that is random comes from")
	minutes := flag.Float64("minutes", 1, "how long faults happen on each engine")
	only := flag.String("faults", "", "the faults to do, separated by commas; all by default")
	pooler := flag.Bool("pooler", false, "whether processes connect to PostgreSQL through a PgBouncer in transaction mode")
	flag.Parse()
	names, err := testdb.ParseEngines(*engines)
	if err != nil {
		return false, err
	}
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	fmt.Printf("seed %d\n", *seed)
	ok = true
	for _, engine := range names {
		o := faults.Options{
			Engine: engine, Seed: *seed, Duration: time.Duration(*minutes * float64(time.Minute)),
			Program: program, Log: os.Stdout, Pooler: *pooler,
		}
		if *only != "" {
			o.Only = strings.Split(*only, ",")
		}
		fine, err := one(ctx, o)
		if errors.Is(err, faults.ErrDamaged) {
			// Nothing is known of falldue then. Twice would be no accident.
			o.Seed++
			fmt.Printf("%s: %v\n%s: once more, with seed %d\n", engine, err, engine, o.Seed)
			fine, err = one(ctx, o)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", engine, err)
		}
		ok = ok && fine
	}
	return ok, nil
}

// one runs the suite on one engine, and reports whether nothing was wrong.
func one(ctx context.Context, o faults.Options) (ok bool, err error) {
	if o.Folder, err = os.MkdirTemp("", "falldue-faults-"); err != nil {
		return false, err
	}
	// A server runs as another user, and its data is in there.
	if err := os.Chmod(o.Folder, 0o711); err != nil { //nolint:gosec // others cannot list it
		return false, err
	}
	result, err := faults.Do(ctx, o)
	if err != nil {
		return false, fmt.Errorf("%w\nhistories and logs are in %s", err, o.Folder)
	}
	if result.Tasks == 0 {
		return false, fmt.Errorf("no enqueue was acknowledged, so that nothing was tested\nhistories and logs are in %s", o.Folder)
	}
	if result.OK() {
		_ = os.RemoveAll(o.Folder)
	} else {
		for _, finding := range result.Findings {
			fmt.Println(finding)
		}
		fmt.Printf("histories and logs are in %s\n", o.Folder)
	}
	fmt.Printf("engine=%s seed=%d tasks=%d attempts=%d lost=%d doubled=%d stale_settles=%d early=%d exceeded=%d faults=%d\n",
		o.Engine, o.Seed, result.Tasks, result.Attempts, result.Lost, result.Doubled, result.StaleSettles, result.Early, result.Exceeded, result.Faults)
	return result.OK(), nil
}
