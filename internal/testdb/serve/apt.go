package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/falldue/falldue/internal/testdb"
)

// aptLock lets one installation run at a time: apt-get does not wait for
// another one that is fetching the lists of packages.
var aptLock = make(chan struct{}, 1)

// installPrograms installs an engine's Debian package and runs its programs.
func installPrograms(ctx context.Context, engine string) (*server, error) {
	name, ok := map[string]string{
		testdb.Postgres: "postgresql",
		testdb.MariaDB:  "mariadb-server",
	}[engine]
	if !ok {
		return nil, errors.New("no package of it in Debian")
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("installing packages takes root")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, err
	}
	select {
	case aptLock <- struct{}{}:
		defer func() { <-aptLock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	fmt.Fprintf(os.Stderr, "testdb: apt-get install %s\n", name)
	for _, args := range [][]string{
		{"update"},
		{"install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", name},
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("apt-get %s: %w\n%s", args[0], err, lastLines(said.String()))
		}
	}
	return startPrograms(ctx, engine)
}
