package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

var update = flag.Bool("update", false, "update the table of presets in docs/presets.md, and their pictures")

// TestDocumentsShowTheOutputOfCommands runs each "$ falldue …" of the
// documents and compares its output with the one that they show below it.
func TestDocumentsShowTheOutputOfCommands(t *testing.T) {
	t.Parallel()
	const prompt = "$ falldue "
	shown := 0
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if slices.Contains(tourFiles, filepath.Base(file)) {
				continue // its commands need a database
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, block := range strings.Split(string(text), "```console\n") {
				if i == 0 {
					continue // the text before the first block
				}
				block, _, _ = strings.Cut(block, "```\n")
				for _, command := range strings.Split("\n"+block, "\n"+prompt)[1:] {
					line, want, _ := strings.Cut(command, "\n")
					want = strings.TrimSuffix(want, "\n") + "\n"
					shown++
					if got := mustRun(t, splitArgs(line)...); got != want {
						t.Errorf("%s: %s%s prints\n%sbut it shows\n%s", file, prompt, line, got, want)
					}
				}
			}
		}
	}
	if shown == 0 {
		t.Error("no document shows the command")
	}
}

// splitArgs splits a command line like a shell that knows only single quotes.
func splitArgs(line string) (list []string) {
	quoted, open := false, false // whether an argument has begun
	for _, r := range line {
		switch {
		case r == '\'':
			quoted = !quoted
		case unicode.IsSpace(r) && !quoted:
			open = false
			continue
		}
		if !open {
			list, open = append(list, ""), true
		}
		if r != '\'' {
			list[len(list)-1] += string(r)
		}
	}
	return list
}

// TestPresetTableIsUpToDate compares the table of presets in docs/presets.md with
// the presets.
func TestPresetTableIsUpToDate(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- presets: made by go -C cmd/falldue test -update -->\n", "<!-- end of presets -->\n"
	file := filepath.Join("..", "..", "docs", "presets.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no table of presets between %q and %q", file, begin, end)
	}
	table := presetTable()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("%s shows\n%swant\n%s(go -C cmd/falldue test -update updates it)", file, old, table)
	}
}

// TestPresetPicturesAreUpToDate compares the picture of each preset in docs/policies with
// what "falldue policy preview" draws, and finds each in docs/presets.md or docs/policies.md.
func TestPresetPicturesAreUpToDate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "docs", "policies")
	var pages string
	for _, name := range []string{"presets.md", "policies.md"} {
		page, err := os.ReadFile(filepath.Join(filepath.Dir(folder), name))
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	drawn := map[string][]string{
		"herds": {"herd", "visualization_constant", "visualization_sidekiq", "zizq", "--failures", "50"},
	}
	for _, preset := range backoff.Presets() {
		drawn[preset.Name] = []string{"preview", preset.Name}
	}
	for name, args := range drawn {
		if !strings.Contains(pages, "(policies/"+name+".svg)") {
			t.Errorf("no page shows policies/%s.svg", name)
		}
		file, picture := filepath.Join(folder, name+".svg"), filepath.Join(t.TempDir(), "p.svg")
		mustRun(t, append(append([]string{"policy"}, args...), "--svg", picture)...)
		got, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what falldue policy %s draws (error %v; go -C cmd/falldue test -update draws it)", file, strings.Join(args, " "), err)
		}
	}
}

// presetTable returns a table of how long a task waits after its first failures,
// under each preset with its defaults.
func presetTable() string {
	var b bytes.Buffer
	failures := []int64{1, 2, 3, 5, 10}
	fmt.Fprint(&b, "| preset |")
	for _, n := range failures {
		fmt.Fprintf(&b, " n = %d |", n)
	}
	fmt.Fprint(&b, " given up after |\n|---|", strings.Repeat("---|", len(failures)), "---|\n")
	for _, preset := range backoff.Presets() {
		policy, err := backoff.Parse(preset.Name)
		if err != nil {
			panic(err) // the tests of backoff check that the defaults of presets are valid
		}
		fmt.Fprintf(&b, "| `%s` |", preset.Name)
		for _, n := range failures {
			if most := policy.MaxAttempts(); most > 0 && n >= int64(most) {
				fmt.Fprint(&b, " |")
				continue
			}
			delay, jitter := policy.Wait(n)
			fmt.Fprintf(&b, " %s |", band(delay, delay+jitter))
		}
		schedule, err := ops.Preview(policy, 100)
		if err != nil {
			panic(err)
		}
		limit := "never"
		if schedule.Most > 0 {
			limit, _, _ = strings.Cut(strings.TrimPrefix(ending(schedule, time.Time{}), "given up after "), ", at the latest")
		}
		fmt.Fprintf(&b, " %s |\n", limit)
	}
	return b.String()
}
