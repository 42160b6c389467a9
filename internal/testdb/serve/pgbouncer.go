package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// pgBouncer is the name of the program.
const pgBouncer = "pgbouncer"

// firstPgBouncer is the first minor version of PgBouncer 1 that keeps running when clients cancel
// statements: before it, a message of a server that is being cancelled ends the program
// (https://github.com/pgbouncer/pgbouncer/pull/927).
const firstPgBouncer = 21

var pgBouncerVersion = regexp.MustCompile(`(?m)^PgBouncer 1\.([0-9]+)\.`)

// installPgBouncer returns the path of a PgBouncer. On Debian, where the machine's own is
// old, it is the program of Debian sid, if the user is root. Other users get the old one.
func installPgBouncer(ctx context.Context) (path string, err error) {
	if path, err = installProgram(ctx, pgBouncer); err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("testdb: %s --version: %w", path, err)
	}
	version := pgBouncerVersion.FindSubmatch(said)
	if version == nil {
		return "", fmt.Errorf("testdb: %s --version printed %q", path, said)
	}
	if minor, err := strconv.Atoi(string(version[1])); err != nil || minor >= firstPgBouncer || os.Geteuid() != 0 {
		return path, err
	}
	if use, err := sourceEnabled("apt"); err != nil || !use {
		return path, err
	}
	root, err := debianFolder(ctx, "sid", pgBouncer)
	if err != nil {
		return "", fmt.Errorf("testdb: %s is 1.%s, and a newer one could not be had: %w", path, version[1], err)
	}
	return withLibraries(root, pgBouncer)
}

// withLibraries makes a program that runs one of a folder with another Debian by the
// libraries in that folder, and returns its path. Unlike with chroot it can read other files.
func withLibraries(root, program string) (string, error) {
	loader := firstOf(root, "usr", "lib*", "ld-linux-*.so.*")
	libraries := firstOf(root, "usr", "lib", "*-linux-gnu")
	if loader == "" || libraries == "" {
		return "", fmt.Errorf("testdb: no dynamic loader or no libraries in %s", root)
	}
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' --library-path '%s' '%s' \"$@\"\n", loader, libraries, filepath.Join(root, lookUp(root, program)))
	path := filepath.Join(root, "run-"+program)
	part := fmt.Sprintf("%s.%d", path, os.Getpid()) // others may be about to run it
	if err := os.WriteFile(part, []byte(text), 0o755); err != nil {
		return "", err
	}
	return path, os.Rename(part, path)
}

// firstOf returns the first path that matches, or "".
func firstOf(pattern ...string) string {
	paths, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(paths) == 0 {
		return ""
	}
	return paths[0]
}
