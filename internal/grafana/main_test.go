package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/signals"
)

// TestDashboardsAreGenerated: the files have what the command writes.
func TestDashboardsAreGenerated(t *testing.T) {
	t.Parallel()
	for name, v := range variants {
		stored, err := os.ReadFile(filepath.Join("..", "..", "grafana", name))
		if err != nil || !bytes.Equal(stored, dashboard(v)) {
			t.Errorf("grafana/%s differs from the list of panels (error %v); run: go run ./internal/grafana", name, err)
		}
	}
}

// parsed is the part of a dashboard that its reader sees.
type parsed struct {
	Title, UID string
	Panels     []struct {
		ID                       int
		Title, Type, Description string
		GridPos                  struct{ X, Y, W, H int }
		Datasource               struct{ UID string }
		Targets                  []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Annotations struct{ List []struct{ Expr string } }
}

// TestPanelsExplainThemselves: each has a title of its own, a place of its own, queries, a meaning and an advice.
func TestPanelsExplainThemselves(t *testing.T) {
	t.Parallel()
	for name, v := range variants {
		var d parsed
		if err := json.Unmarshal(dashboard(v), &d); err != nil {
			t.Fatal(err)
		}
		if d.Title == "" || d.UID == "" || len(d.Panels) != len(panels) || len(d.Templating.List) != 3 || len(d.Annotations.List) != 2 {
			t.Errorf("%s has %d panels, the variables %v and the annotations %v", name, len(d.Panels), d.Templating.List, d.Annotations.List)
		}
		taken, titles := map[[2]int]string{}, map[string]bool{}
		for _, p := range d.Panels {
			meaning, advice, two := strings.Cut(p.Description, "\n\n**What to do:** ")
			if !two || len(meaning) < 20 || len(advice) < 20 || !strings.HasSuffix(meaning, ".") || !strings.HasSuffix(advice, ".") {
				t.Errorf("%s: panel %q is described as %q", name, p.Title, p.Description)
			}
			if titles[p.Title] || p.Title == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: panel %q is there twice, or has no query or another source", name, p.Title)
			}
			titles[p.Title] = true
			if p.GridPos.X+p.GridPos.W > columns || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s: panel %q is at %+v", name, p.Title, p.GridPos)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: panels %q and %q overlap", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if len(p.Targets) > 1 && slices.ContainsFunc(p.Targets, func(q struct{ Expr, LegendFormat string }) bool { return q.LegendFormat == "" }) {
				t.Errorf("%s: panel %q has queries without a legend", name, p.Title)
			}
		}
	}
}

// TestExpressionsHaveKnownNames: each metric and label is in the table, metrics of the state are aggregated with
// max first, and counters have a rate.
func TestExpressionsHaveKnownNames(t *testing.T) {
	t.Parallel()
	series := regexp.MustCompile(`falldue_[a-z_]+(\{[^}]*\})?(\[[^\]]+\])?`)
	used := map[string]bool{}
	check := func(title, expr string) {
		if strings.Count(expr, "(") != strings.Count(expr, ")") {
			t.Errorf("%s: %s lacks a parenthesis", title, expr)
		}
		allowed := []string{"le"}
		for _, at := range series.FindAllStringSubmatchIndex(expr, -1) {
			found, before := expr[at[0]:at[1]], expr[:at[0]]
			m, suffix := metricOf(metricName.FindString(found))
			if m == nil {
				t.Errorf("%s: %s is no metric", title, found)
				continue
			}
			used[m.Name] = true
			allowed = append(allowed, m.Labels...)
			for _, l := range labelName.FindAllStringSubmatch(found, -1) {
				if !slices.Contains(m.Labels, l[1]) {
					t.Errorf("%s: %s has no label %s", title, m.Name, l[1])
				}
			}
			if m.State && !regexp.MustCompile(`max (by \([^)]*\) )?\($|max\($`).MatchString(before) {
				t.Errorf("%s: %s is not aggregated with max, although all processes export it", title, m.Name)
			}
			if m.Type == signals.Histogram && suffix == "" || (m.Type != signals.Gauge) != strings.HasSuffix(found, "]") {
				t.Errorf("%s: %s is a %s", title, found, m.Type)
			}
		}
		for _, l := range labelName.FindAllStringSubmatch(expr, -1) {
			if !slices.Contains(allowed, l[1]) {
				t.Errorf("%s: no metric of %s has the label %s", title, expr, l[1])
			}
		}
	}
	check("pauses", pauses)
	check("overrides", overrides)
	for _, p := range panels {
		for _, q := range p.queries {
			check(p.title, q.expr)
			for _, l := range labelName.FindAllStringSubmatch(q.legend, -1) {
				if !strings.Contains(q.expr, "@"+l[1]) {
					t.Errorf("%s: the legend %q has a label that the query drops", p.title, q.legend)
				}
			}
		}
	}
	used["falldue_claim_tasks"], used["falldue_started_total"], used["falldue_due_tasks"] = true, true, true // for readers' own graphs
	used["falldue_sample_seconds"], used["falldue_sample_errors_total"] = true, true                         // likewise
	for _, m := range signals.Metrics() {
		if !used[m.Name] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}
