package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/testdb/galera"
)

// installPrograms installs an engine's Debian packages and starts its programs.
func installPrograms(ctx context.Context, engine string) (*server, error) {
	if engine == testdb.MySQL {
		return startFromDebian(ctx, engine, "sid", mysqlPackages) // stable Debian has MariaDB alone
	}
	names, ok := map[string][]string{
		testdb.Postgres: {"postgresql"},
		testdb.MariaDB:  {"mariadb-server"},
		testdb.Galera:   galera.Packages,
	}[engine]
	if !ok {
		return nil, errors.New("no package of it in Debian")
	}
	if err := aptInstall(ctx, names...); err != nil {
		return nil, err
	}
	return startPrograms(ctx, engine)
}

// installProgram returns the path of a program that does not belong to an engine. If
// it is missing, installProgram installs the Debian package of the same name.
func installProgram(ctx context.Context, program string) (path string, err error) {
	if path = lookUp("", program); path != "" {
		return path, nil
	}
	use, err := sourceEnabled("apt")
	if err == nil && !use {
		err = errors.New("left out by " + sourcesVariable)
	}
	if err == nil {
		err = aptInstall(ctx, program)
	}
	if err != nil {
		return "", fmt.Errorf("testdb: no program %s in PATH, %s: %w\ninstall it: apt-get install %s", program, strings.Join(folders, ", "), err, program)
	}
	return lookUp("", program), nil
}

// aptInstall installs Debian packages.
func aptInstall(ctx context.Context, names ...string) error {
	if os.Geteuid() != 0 {
		return errors.New("installing packages needs root")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "testdb: apt-get install %s\n", strings.Join(names, " "))
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, names...),
	} {
		// The tests of another package may run apt-get at the same time, and
		// apt-get does not wait for another "apt-get update".
		cmd := exec.CommandContext(ctx, "flock", append([]string{"/run/lock/falldue-apt", "apt-get"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, lastLines(output.String()))
		}
	}
	return nil
}
