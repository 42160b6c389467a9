// Serve starts the database servers that the tests run on.
//
//	serve -- COMMAND…   runs a command with a server for each engine, whose DSNs
//	                    are in environment variables, and then stops the servers
//	serve matrix RELEASES -- COMMAND…
//	                    runs a command with a server of each release that
//	                    docs/engines.md names, one after the other, and prints
//	                    a table; RELEASES selects some, separated by commas
//	serve hold ENGINE   prints the DSN of one server and runs the server until
//	                    the standard input ends
//	serve keep ENGINE   does the same with a server in a container that keeps
//	                    its commits when it is killed; a line "kill" or "restart"
//	                    on the standard input kills or restarts it, and it prints
//	                    the DSN again when the server is back
//	serve install NAME  prints the path of a program that some tests need, and
//	                    installs its Debian package if it is missing
//
// Serve uses another form, "serve watch", itself: see watch.go.
//
// It looks for a server in this order. FALLDUE_TEST_SOURCES, a list separated by
// commas, limits the last three to those that it names:
//
//   - a DSN in FALLDUE_TEST_POSTGRES, FALLDUE_TEST_MYSQL, FALLDUE_TEST_MARIADB,
//     FALLDUE_TEST_TIDB
//   - docker: a container on a Docker engine, of the official image or of the
//     image that FALLDUE_TEST_POSTGRES_IMAGE and so on name
//   - programs: server programs of this machine, run on a free port of the
//     loopback interface with a temporary data folder, in memory if there is
//     room; TiDB's is built from the module in internal/testdb/tidb
//   - apt: the same, after installing them from Debian's packages, as root; the
//     packages of MySQL are only in Debian sid, and go into a folder of the user's cache
//
// Everything that it started ends with it, even if it is interrupted or killed.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/falldue/falldue/internal/testdb"
)

func main() { os.Exit(status(os.Args[1:])) }

// status runs the program and returns its exit status. If it ran a command, that is
// the exit status of the command.
func status(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, args)
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 0 { //nolint:errorlint // a wrapped one needs its text
		return exit.ExitCode() // the command has said why
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 1 && args[0] == "--":
		return runCommand(ctx, args[1:])
	case len(args) > 3 && args[0] == "matrix" && args[2] == "--":
		return runMatrix(ctx, args[1], args[3:])
	case len(args) == 2 && args[0] == "hold":
		return hold(ctx, args[1], os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "keep":
		return keep(ctx, args[1], os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "install":
		install := installProgram
		if args[1] == pgBouncer {
			install = func(ctx context.Context, _ string) (string, error) { return installPgBouncer(ctx) }
		}
		path, err := install(ctx, args[1])
		if err == nil {
			fmt.Println(path)
		}
		return err
	case len(args) == 2 && args[0] == "watch":
		return watch(args[1])
	}
	return errors.New("usage: serve -- COMMAND…  |  serve matrix RELEASES -- COMMAND…  |  serve hold ENGINE  |  serve keep ENGINE  |  serve install NAME")
}

// hold starts one server, writes its DSN as a line and runs the server until the
// input ends, which means that the process that asked for it is gone.
func hold(ctx context.Context, engine string, in io.Reader, out io.Writer) error {
	ctx, cancel := untilEOF(ctx, in)
	defer cancel()
	s, err := find(ctx, engine)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := fmt.Fprintln(out, s.dsn); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// runCommand runs a command with a server for each engine of the run. When it
// returns, the command and the servers have ended.
func runCommand(ctx context.Context, args []string) error {
	ctx, cancel := untilOrphaned(ctx)
	defer cancel()
	wanted, err := testdb.RunEngines()
	if err != nil {
		return err
	}
	servers, missing := findAll(ctx, wanted)
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	if missing != nil && (ctx.Err() != nil || os.Getenv(testdb.EnginesVariable) != "") {
		return missing
	}
	var found []string
	// Files of SQLite are in memory, too; what the go command builds is too large for that.
	env := append(os.Environ(), "GOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()), "TMPDIR="+tempFolder())
	for _, engine := range wanted {
		if s := servers[engine]; s != nil {
			env = append(env, testdb.ServerVariable(engine)+"="+s.dsn)
		} else if engine != testdb.SQLite {
			continue
		}
		found = append(found, engine)
	}
	if missing != nil {
		fmt.Fprintf(os.Stderr, "%v\ntestdb: the tests run on %s, and fail in the end\n", missing, strings.Join(found, ", "))
	}
	env = append(env, testdb.EnginesVariable+"="+strings.Join(found, ","))
	err = runGroup(ctx, args, env, os.Stdout)
	if ctx.Err() != nil {
		return err
	}
	// The first lines of a long run are not read, so the last ones repeat them.
	fmt.Fprintln(os.Stderr, "testdb: "+coverage(found, servers))
	if missing != nil {
		return errors.Join(missing, err)
	}
	return err
}

// coverage says which engines a run has covered, and which not.
func coverage(found []string, servers map[string]*server) string {
	var covered, not []string
	for _, engine := range found {
		if s := servers[engine]; s != nil {
			engine += " " + s.version
		}
		covered = append(covered, engine)
	}
	for _, engine := range testdb.DefaultEngines {
		if !slices.Contains(found, engine) {
			not = append(not, engine)
		}
	}
	text := "these tests ran on " + strings.Join(covered, ", ")
	if len(not) > 0 {
		text += "; NOT on " + strings.Join(not, ", ")
	}
	return text
}
