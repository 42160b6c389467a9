package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the program of the tests a worker process and a proxy, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == processArgument || os.Args[1] == proxyArgument) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestScalingOnSQLite makes all tables with few tasks, on the engine that needs no server,
// and writes them into a document.
func TestScalingOnSQLite(t *testing.T) {
	document := "before\n"
	for _, table := range scalingTables {
		document += "<!-- sqlite " + table.name + " -->\n<!-- end -->\n"
	}
	c := &config{
		engine: sqlite, scaling: []string{allTables}, tasks: 200, backlog: 100, processes: 2, rounds: 3, while: time.Millisecond,
		patience: 30 * time.Second, doc: filepath.Join(t.TempDir(), "scaling.md"), command: "go run . --scaling all",
	}
	if err := os.WriteFile(c.doc, []byte(document+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.doc)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "after\n") {
		t.Errorf("the text around the tables has changed: %s", got)
	}
	for _, row := range []string{"| 1 |", "| 2 |", "| 0 |", "| 50,000 |", "| 1,000 | one of them |", "| 1,000 | all |", "| 300 | a pattern |", "| tenants | tasks/s |", "200 tasks, the median of 3 drains; ", "`" + c.command + "`"} {
		if !strings.Contains(got, row) {
			t.Errorf("no row %q in %s", row, got)
		}
	}
}

// TestTheMedianOfDrains has three drains, and one that fails.
func TestTheMedianOfDrains(t *testing.T) {
	t.Parallel()
	times := []time.Duration{5, 1, 3}
	n := 0
	d, err := medianDrain(&config{rounds: 3}, func() (drained, error) {
		n++
		return drained{took: times[n-1], claims: n}, nil
	})
	if err != nil || d.took != 3 || d.claims != 3 || n != 3 {
		t.Errorf("%d drains, the median is %+v, error %v", n, d, err)
	}
	if d, err := medianDrain(&config{rounds: 3}, func() (drained, error) { return drained{}, errHandler }); !errors.Is(err, errHandler) {
		t.Errorf("%+v, error %v", d, err)
	}
}

func TestReplaceBlock(t *testing.T) {
	t.Parallel()
	const document = "a\n<!-- x y -->\nold\n<!-- end -->\nb\n<!-- x z -->\nkept\n<!-- end -->\n"
	got, err := replaceBlock(document, "x y", "new")
	if want := strings.Replace(document, "old", "new", 1); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, broken := range []string{"a\n", "<!-- x y -->\nold\n"} {
		if got, err := replaceBlock(broken, "x y", "new"); err == nil {
			t.Errorf("%q became %q without an error", broken, got)
		}
	}
}

func TestPickTables(t *testing.T) {
	t.Parallel()
	if list, err := pickTables([]string{"lanes", "waiting"}); err != nil || len(list) != 2 || list[0].name != "waiting" {
		t.Errorf("got %v, %v, want waiting and lanes", list, err)
	}
	if _, err := pickTables([]string{"moons"}); err == nil || !strings.Contains(err.Error(), "processes, waiting, lanes, queues") {
		t.Errorf("got %v, want an error with the allowed names", err)
	}
}

func TestProcessorTimeOfATree(t *testing.T) {
	t.Parallel()
	all := processTimes{}
	for _, line := range []string{
		"10 (postgres) S 1 10 10 0 -1 0 0 0 0 0 100 50 7 3 20 0",
		"11 (a (b) c) S 10 10 10 0 -1 0 0 0 0 0 5 5 0 0 20 0",
		"12 (sh) S 11 10 10 0 -1 0 0 0 0 0 1 0 0 0 20 0",
		"20 (other) S 1 10 10 0 -1 0 0 0 0 0 1000 0 0 0 20 0",
	} {
		id, p, ok := parseStat(line)
		if !ok {
			t.Fatalf("cannot read %q", line)
		}
		all[id] = p
	}
	if got, want := all.of(10), 1710*time.Millisecond; got != want {
		t.Errorf("got %v of the tree, want %v", got, want)
	}
	if got, want := all.of(11, 20), 10110*time.Millisecond; got != want {
		t.Errorf("got %v of two processes, want %v", got, want)
	}
	for _, line := range []string{"", "x (y) S 1", "10 (y) S 1"} {
		if id, p, ok := parseStat(line); ok {
			t.Errorf("%q became %d, %v", line, id, p)
		}
	}
}

func TestActivityNamesWhatMostSessionsDid(t *testing.T) {
	t.Parallel()
	a := activity{moments: 10, sessions: map[string]int{"running": 12, "Lock tuple": 3, "IO WALSync": 3, "IO DataFileRead": 1}}
	if got, want := a.String(), "running 1.2, IO WALSync 0.3, Lock tuple 0.3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (activity{}).String(); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}
