package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

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
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", r.name(), err)
			result = "FAILED"
			failed++
		}
		table = append(table, fmt.Sprintf("| %s | %s | %s | %.0f |", r.name(), version, result, time.Since(begun).Seconds()))
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
		i := slices.IndexFunc(releases, func(r release) bool { return r.name() == name })
		if i < 0 {
			var known []string
			for _, r := range releases {
				known = append(known, r.name())
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
	if s.version, err = testdb.Check(ctx, r.engine, s.dsn); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "testdb: %s %s\n", r.name(), s.version)
	env := append(os.Environ(), testdb.EnginesVariable+"="+r.engine, testdb.ServerVariable(r.engine)+"="+s.dsn)
	return s.version, runGroup(ctx, command, env, os.Stdout)
}
