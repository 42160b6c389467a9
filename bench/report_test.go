package main

import (
	"slices"
	"strings"
	"testing"
)

// TestRatiosStandWhereBothSystemsRan has systems that miss measures.
func TestRatiosStandWhereBothSystemsRan(t *testing.T) {
	t.Parallel()
	var all results
	for system, value := range map[string]float64{tunedName: 60, rawName: 80, pooledName: 45, pgxName: 90} {
		all.add(postgres, "drain_kept", system, value)
	}
	all.add(postgres, "enqueue_1", tunedName, 5)
	all.add(postgres, "enqueue_1", pgxPooledName, 4)
	got := tablesOf(all)[0].RenderMarkdown()
	for _, want := range []string{
		"| measure | falldue | falldue-pooled | falldue-pgx | falldue-pgx-pooled | raw | falldue / raw | falldue-pgx / falldue | falldue-pooled / falldue |\n",
		"| drain_kept | 60 | 45 | 90 |  | 80 | 0.75 | 1.5 | 0.75 |",
		"| enqueue_1 | 5 |  |  | 4 |  |  |  |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	all.add(postgres, "enqueue_1", pgxName, 8)
	if got := tablesOf(all)[0].RenderMarkdown(); !strings.Contains(got, "| falldue-pgx-pooled / falldue-pgx |") || !strings.Contains(got, "| 1.6 |  | 0.5 |") {
		t.Errorf("no ratio of the pooled pgx in\n%s", got)
	}
}

// TestPooledSystemsWantAPooler: they are left out without one, and say what they lack.
func TestPooledSystemsWantAPooler(t *testing.T) {
	t.Setenv(poolerVariable, "")
	_, order, err := choose(postgres, nil)
	if err != nil || strings.Contains(strings.Join(order, " "), "pooled") || slices.Contains(order, meteredName) || len(order) != len(systems[postgres])-3 {
		t.Errorf("without a pooler: %v, %v", order, err)
	}
	for _, name := range []string{pooledName, pgxPooledName} {
		opens, _, err := choose(postgres, []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opens[name](t.Context(), database{server: &server{engine: postgres}}, settings{}); err == nil || !strings.Contains(err.Error(), poolerVariable) {
			t.Errorf("%s: error %v, want one that names %s", name, err, poolerVariable)
		}
	}
	t.Setenv(poolerVariable, "127.0.0.1:6432")
	if _, order, err := choose(postgres, nil); err != nil || len(order) != len(systems[postgres])-1 {
		t.Errorf("with a pooler: %v, %v", order, err)
	}
	db := database{dsn: "postgres://a@b:5432/c?sslmode=disable", pooler: "d:6432"}
	if got, err := db.pooled("default_query_exec_mode", "exec"); err != nil || got != "postgres://a@d:6432/c?default_query_exec_mode=exec&sslmode=disable" {
		t.Errorf("got %s, %v", got, err)
	}
}
