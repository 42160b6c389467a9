// Run is the program of the fault suite: it runs worker and enqueuer processes
// on a real database, makes things go wrong from a seed, and judges afterwards
// what became of the tasks.
//
//	run [-engine postgres,mysql,mariadb,sqlite] [-seed N] [-minutes M] [-faults NAMES]
//
// Its last line for each engine says what it found, and its exit status is 0 if
// that is nothing. Of a run that found something the folder with the histories
// stays.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/faults"
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
	status := 0
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	stop()
	os.Exit(status)
}

func run(ctx context.Context) error {
	engines := flag.String("engine", "postgres,mariadb,sqlite", "the engines, one after the other, separated by commas")
	seed := flag.Uint64("seed", rand.Uint64(), "what all that is random comes from")
	minutes := flag.Float64("minutes", 1, "how long faults happen on each engine")
	only := flag.String("faults", "", "the faults to do, separated by commas; all by default")
	flag.Parse()
	names, err := testdb.ParseEngines(*engines)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d\n", *seed)
	wrong := 0
	for _, engine := range names {
		o := faults.Options{
			Engine: engine, Seed: *seed, Duration: time.Duration(*minutes * float64(time.Minute)),
			Program: program, Log: os.Stdout,
		}
		if *only != "" {
			o.Only = strings.Split(*only, ",")
		}
		ok, err := one(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		if !ok {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("something was wrong on %d of %d engines", wrong, len(names))
	}
	return nil
}

// one runs the suite on one engine and tells whether all was well.
func one(ctx context.Context, o faults.Options) (ok bool, err error) {
	if o.Folder, err = os.MkdirTemp("", "falldue-faults-"); err != nil {
		return false, err
	}
	// A server runs as another user, and its data is in there.
	if err := os.Chmod(o.Folder, 0o711); err != nil { //nolint:gosec // nobody can list it
		return false, err
	}
	defer func() {
		if ok {
			_ = os.RemoveAll(o.Folder)
			return
		}
		fmt.Fprintf(os.Stderr, "histories and logs are in %s\n", o.Folder)
	}()
	result, err := faults.Do(ctx, o)
	if err != nil {
		return false, err
	}
	for _, finding := range result.Findings {
		fmt.Println(finding)
	}
	fmt.Printf("engine=%s seed=%d tasks=%d attempts=%d lost=%d doubled=%d stale_settles=%d faults=%d\n",
		o.Engine, o.Seed, result.Tasks, result.Attempts, result.Lost, result.Doubled, result.StaleSettles, result.Faults)
	return result.OK(), nil
}
