// Anytime runs tests at other times of day, on other days and in other zones: make clock. With
// -at and -zone it runs them at one moment.
//
// Go reads the clock from a page that the kernel shares with the process, without a call that
// could be intercepted. Neither faketime, which preloads a C library, nor a time namespace, which
// only moves the monotonic clock, changes the result of time.Now. Setting the machine's clock would
// disturb all other programs.
//
// So anytime compiles the tests with two changed files of the standard library. time.Now adds a
// number of seconds from the environment, and so does the system call with which SQLite, which is C
// translated to Go, reads the clock. The monotonic clock of timers and durations stays as it is, and
// so do the clocks of synctest.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	at := flag.String("at", "", "run the tests at one local `time`, such as \"2028-02-29 23:59:40\"")
	zone := flag.String("zone", "UTC", "the time zone of -at")
	run := flag.String("run", "", "run the tests that match this `pattern`")
	skip := flag.String("skip", "", "leave out the tests that match this `pattern`")
	flag.Parse()
	moments, err := moments()
	if *at != "" {
		var one moment
		one, err = newMoment(*at, *zone)
		moments = []moment{one}
	}
	if err == nil {
		err = runAll(ctx, moments, flag.Args(), *run, *skip)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo
	}
}

// runAll compiles the tests of packages, and runs them at each moment.
func runAll(ctx context.Context, moments []moment, packages []string, run, skip string) error {
	folder, err := os.MkdirTemp("", "falldue-anytime-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	overlay, err := shiftedLibrary(ctx, folder)
	if err != nil {
		return err
	}
	dirs, err := withTests(ctx, packages)
	if err != nil {
		return err
	}
	suites := make([]suite, len(dirs))
	for i, dir := range dirs {
		suites[i] = suite{dir: dir, binary: filepath.Join(folder, fmt.Sprint(i, ".test")), overlay: overlay, args: []string{"-test.short", "-test.run=" + run, "-test.skip=" + skip}}
		if err := suites[i].compile(ctx); err != nil {
			return err
		}
	}
	failed := 0
	for _, m := range moments {
		began := time.Now()
		failures := runAt(ctx, m, suites)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		state := "ok"
		if failures != "" {
			failed++
			state = "FAILED\n" + failures
		}
		fmt.Printf("%s  %4.0f s  %s\n", m, time.Since(began).Seconds(), state)
	}
	if failed > 0 {
		return fmt.Errorf("tests failed at %d of %d moments", failed, len(moments))
	}
	return nil
}

// withTests returns the folders of the packages that have tests. A pattern is the folder of a
// package, or the folder of a module and "/..." for all its packages.
func withTests(ctx context.Context, patterns []string) ([]string, error) {
	var dirs []string
	for _, pattern := range patterns {
		cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", ".")
		dir, all := strings.CutSuffix(pattern, "/...")
		if cmd.Dir = dir; all {
			cmd.Args[len(cmd.Args)-1] = "./..."
		}
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages of %s: %w", pattern, err)
		}
		dirs = append(dirs, strings.Fields(string(out))...)
	}
	return dirs, nil
}

// suite is the tests of a package.
type suite struct {
	dir, binary, overlay string
	args                 []string
}

func (s suite) compile(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", s.overlay, "-o", s.binary, ".")
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the tests of %s: %w\n%s", s.dir, err, out)
	}
	return nil
}

// run runs the tests at a moment, and returns their output if they fail.
func (s suite) run(ctx context.Context, m moment) string {
	cmd := exec.CommandContext(ctx, s.binary, s.args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(),
		fmt.Sprintf("%s=%d", shiftVariable, m.at.Unix()-time.Now().Unix()), "TZ="+m.at.Location().String(),
		// Programs that the tests compile have the same clock.
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+s.overlay))
	var out, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logs
	err := cmd.Run()
	if err == nil {
		return ""
	}
	if !bytes.Contains(out.Bytes(), []byte("--- FAIL")) { // a panic, for example
		out.Write(logs.Bytes())
	}
	return fmt.Sprintf("%s: %v\n%s", s.dir, err, out.Bytes())
}

// together is how many suites run at a time: they mostly wait.
const together = 6

// runAt runs all suites at a moment, and returns the output of failed ones.
func runAt(ctx context.Context, m moment, suites []suite) string {
	failures := make([]string, len(suites))
	var all sync.WaitGroup
	turns := make(chan struct{}, together)
	for i, s := range suites {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			failures[i] = s.run(ctx, m)
		})
	}
	all.Wait()
	return strings.Join(failures, "")
}
