package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/testdb"
)

var update = flag.Bool("update", false, "rewrite docs/benchmarks/records.md and its pictures from the template and the records, without a measurement")

// TestDocumentIsMadeOfItsRecords compares the document with what its template makes of the
// records next to it: a change of either needs go test -run Document -update.
func TestDocumentIsMadeOfItsRecords(t *testing.T) {
	t.Parallel()
	const path = "../docs/benchmarks/records.md"
	data, err := readDoc(docFolder(path))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := rewriteDoc(path); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	if err := docTemplate.Execute(&want, data); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what its template makes; run go test -run Document -update", path)
	}
	pictures := data.pictures()
	if len(pictures) < 10 {
		t.Errorf("the document has %d pictures", len(pictures))
	}
	for name, figure := range pictures {
		got, err := os.ReadFile(filepath.Join(docFolder(path), name))
		if err != nil || string(got) != figure.Draw(chart.Width).SVG(chart.Auto) {
			t.Errorf("%s is not what its record makes (error %v); run go test -run Document -update", name, err)
		}
	}
}

// TestEveryFigureIsDescribed: the document says of each measure what it is, and of each
// figure that comes with one. "the same" would refer to another measure if one came between.
func TestEveryFigureIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/benchmarks/records.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range measures {
		if len(m.about) < 20 || !strings.Contains(string(text), "- `"+m.name+"`: "+m.About()+".\n") {
			t.Errorf("the document does not describe %s, which is %q", m.name, m.about)
		}
		for _, figure := range m.also {
			if !strings.Contains(m.about, figure) {
				t.Errorf("the description of %s does not say what %s is", m.name, figure)
			}
		}
	}
}

// TestTiDBIsAnEngineThatNobodyStarts: it has the measures that matter there, and an error says
// how to name a server.
func TestTiDBIsAnEngineThatNobodyStarts(t *testing.T) {
	t.Setenv(testdb.ServerVariable(tiDB), "")
	if _, err := pick(tiDB, []string{"claim_ms", "drain_kept", "drain_deleted", "enqueue_many", "pickup_p50_ms"}); err != nil {
		t.Error(err)
	}
	if _, order, err := choose(tiDB, nil); err != nil || len(order) != 2 {
		t.Errorf("systems %v, error %v", order, err)
	}
	err := run(t.Context(), &config{engine: tiDB})
	if err == nil || !strings.Contains(err.Error(), "--dsn") || !strings.Contains(err.Error(), "FALLDUE_TEST_TIDB") {
		t.Errorf("error %v, want one that says how to name a server", err)
	}
	if titleOf(tiDB) != "TiDB" {
		t.Errorf("the document has no section of it")
	}
}

// described reports whether a measure has the figure.
func described(figure string) bool {
	for _, m := range measures {
		for _, name := range append([]string{m.name}, m.also...) {
			if name == figureOf(figure) {
				return true
			}
		}
	}
	return false
}

// TestFiguresOfTheDocumentAreDescribed looks at all that was measured.
func TestFiguresOfTheDocumentAreDescribed(t *testing.T) {
	t.Parallel()
	for _, title := range titles {
		r, err := readRecord("../docs/benchmarks", title.engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			for _, x := range p.Results {
				if !described(x.Measure) {
					t.Errorf("no measure describes %s of %s", x.Measure, title.title)
				}
			}
		}
	}
}

// TestSummaryIsOfTheRecords: a row of docs/benchmarks.md that names a measure has falldue's figures of it, or of
// falldue-default, one for each engine of the table's head. In a table of shares, it has falldue's share of raw.
func TestSummaryIsOfTheRecords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	var engines []string
	recorded := figures
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "|\n"), "|")[1:]
		if head, _, _ := strings.Cut(line, " PostgreSQL"); head == "| |" || head == "| falldue / raw |" {
			engines, recorded = []string{postgres, mySQL, mariaDB, sqlite}[:len(cells)-1], figures
			if head != "| |" {
				recorded = shares
			}
		}
		measure := regexp.MustCompile("`(\\w+)`").FindStringSubmatch(cells[0])
		if measure == nil {
			continue
		}
		for i, engine := range engines {
			cell := strings.TrimSpace(cells[i+1])
			if rows++; cell != "" && !slices.Contains(recorded(t, engine, measure[1]), cell) {
				t.Errorf("%s of %s: no record has %s, only %q", measure[1], engine, cell, recorded(t, engine, measure[1]))
			}
		}
	}
	if rows < 50 {
		t.Errorf("found only %d figures", rows)
	}
}

// shares returns falldue's medians of a measure as shares of raw's, of each part of the records that has both.
func shares(t *testing.T, engine, measure string) (list []string) {
	t.Helper()
	r, err := readRecord("../docs/benchmarks", engine)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Parts {
		medians := map[string]float64{}
		for _, x := range p.Results {
			if x.Measure == measure {
				medians[x.System] = x.Median
			}
		}
		if medians["falldue"] > 0 && medians["raw"] > 0 {
			list = append(list, number(medians["falldue"]/medians["raw"]))
		}
	}
	return list
}

// figures returns all medians of a measure that were recorded for falldue on an engine.
func figures(t *testing.T, engine, measure string) (list []string) {
	t.Helper()
	r, err := readRecord("../docs/benchmarks", engine)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Parts {
		for _, x := range p.Results {
			if x.Measure == measure && strings.HasPrefix(x.System, "falldue") {
				list = append(list, number(x.Median))
			}
		}
	}
	return list
}
