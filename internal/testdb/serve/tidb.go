package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildTiDB builds TiDB's server program and returns its path. It builds it from
// TiDB's own module, at the version that the module in the folder tidb names,
// because the program is not distributed without it. That takes some minutes the first
// time; the program stays in Go's build cache.
func buildTiDB() (string, error) {
	testdb, err := output(exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/falldue/falldue/internal/testdb"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "tool", "-n", "tidb-server")
	build.Dir = filepath.Join(testdb, "tidb")
	build.Env = append(os.Environ(), "GOWORK=off", "PWD="+build.Dir)
	program, err := output(build)
	if err != nil {
		return "", fmt.Errorf("build TiDB's server in %s: %w", build.Dir, err)
	}
	return program, nil
}

// output runs a command and returns the line that it prints.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
