package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// sourcesVariable is the name of the environment variable that limits the sources.
const sourcesVariable = "FALLDUE_TEST_SOURCES"

// server is a running server.
type server struct {
	dsn     string
	origin  string // where it comes from, for messages
	version string // set by find
	stop    func()
	// restart stops the server, by SIGKILL if kill is set, and starts it again. It
	// is nil for a server that cannot be restarted.
	restart func(ctx context.Context, kill bool) error
}

// sources lists the ways to get a server, in the order in which they are tried.
var sources = []struct {
	name  string
	start func(ctx context.Context, engine string) (*server, error)
}{
	{"docker", startContainer},
	{"programs", startPrograms},
	{"apt", installPrograms},
}

// findAll finds a server for each engine that has servers, concurrently. It returns
// the servers that it found even if others failed.
func findAll(ctx context.Context, engines []string) (map[string]*server, error) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		errs    []error
		servers = map[string]*server{}
	)
	for _, engine := range engines {
		if engine == testdb.SQLite {
			continue
		}
		wg.Go(func() {
			s, err := find(ctx, engine)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			servers[engine] = s
		})
	}
	wg.Wait()
	return servers, errors.Join(errs...)
}

// find finds or starts a server of the engine. The error says what was tried and how
// to get a server.
func find(ctx context.Context, engine string) (*server, error) {
	if engine == testdb.SQLite {
		return nil, errors.New("testdb: sqlite has no server")
	}
	begun := time.Now()
	if dsn := os.Getenv(testdb.ServerVariable(engine)); dsn != "" {
		version, err := testdb.Check(ctx, engine, dsn)
		if err != nil {
			return nil, fmt.Errorf("testdb: the server named by %s cannot be used: %w", testdb.ServerVariable(engine), err)
		}
		s := &server{dsn: dsn, origin: testdb.ServerVariable(engine), version: version, stop: func() {}}
		report(engine, s, begun)
		return s, nil
	}
	tried := []string{testdb.ServerVariable(engine) + ": not set"}
	for _, source := range sources {
		use, err := sourceEnabled(source.name)
		if err != nil {
			return nil, err
		}
		if !use {
			tried = append(tried, source.name+": left out by "+sourcesVariable)
			continue
		}
		s, err := source.start(ctx, engine)
		if ctx.Err() != nil {
			if err == nil {
				s.stop()
			}
			return nil, fmt.Errorf("testdb: interrupted while starting %s", engine)
		}
		if err != nil {
			tried = append(tried, source.name+": "+err.Error())
			continue
		}
		version, err := testdb.Check(ctx, engine, s.dsn)
		if err != nil {
			s.stop()
			tried = append(tried, source.name+": "+err.Error())
			continue
		}
		s.version = version
		report(engine, s, begun)
		return s, nil
	}
	return nil, missingError(engine, tried)
}

func report(engine string, s *server, begun time.Time) {
	fmt.Fprintf(os.Stderr, "testdb: %s %s from %s, in %.1f s\n", engine, s.version, s.origin, time.Since(begun).Seconds())
}

// sourceEnabled reports whether the environment allows the named source.
func sourceEnabled(name string) (bool, error) {
	value := os.Getenv(sourcesVariable)
	if value == "" {
		return true, nil
	}
	var known []string
	for _, s := range sources {
		known = append(known, s.name)
	}
	chosen := strings.Split(value, ",")
	for _, c := range chosen {
		if !slices.Contains(known, c) {
			return false, fmt.Errorf("testdb: %s=%s: unknown source %q; the sources are %s", sourcesVariable, value, c, strings.Join(known, ", "))
		}
	}
	return slices.Contains(chosen, name), nil
}

// missingError returns the error for an engine without a server.
func missingError(engine string, tried []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "testdb: no %s server for the tests. Tried:\n", engine)
	for _, t := range tried {
		fmt.Fprintf(&b, "  - %s\n", strings.ReplaceAll(t, "\n", "\n    "))
	}
	e := engines[engine]
	fmt.Fprintf(&b, "Do one of these:\n")
	fmt.Fprintf(&b, "  - name a server, by a user who may create databases: %s='%s'\n", testdb.ServerVariable(engine), e.exampleDSN)
	if e.image != "" {
		fmt.Fprintf(&b, "  - start a Docker engine that has or can pull %s; %s names another image\n", e.image, imageVariable(engine))
	}
	fmt.Fprintf(&b, "  - install the server programs: %s\n", e.install)
	fmt.Fprintf(&b, "  - leave %s out: list the other engines in %s, such as sqlite alone", engine, testdb.EnginesVariable)
	return errors.New(b.String())
}
