package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestExplain: with the index sweeps and claims read ranges of it, and without it the whole
// table, which doctor says. Other statements find tasks by their keys.
func TestExplain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		if plans, err := i.Explain(t.Context(), "default"); err != nil || len(plans) != 0 {
			t.Errorf("an empty queue has the plans %+v, error %v", plans, err)
		}
		n := 3000                    // doctor lets smaller tables be
		if engine == testdb.SQLite { // it reads them in this process, slowly under -race
			n = 500
		}
		for attempts := range 4 {
			b.add("mail", n, attempts, time.Duration(attempts)*time.Minute)
		}
		analyze := map[string]string{testdb.Postgres: "analyze falldue_tasks", testdb.SQLite: "analyze", testdb.TiDB: "analyze table falldue_tasks all columns"}[engine]
		if analyze == "" {
			analyze = "analyze table falldue_tasks"
		}
		check := func(whole bool) {
			t.Helper()
			plans, err := i.Explain(t.Context(), "default")
			if err != nil || len(plans) == 0 {
				t.Fatalf("the plans are %+v, error %v", plans, err)
			}
			for _, p := range plans {
				if p.Statement == "look" && engine == testdb.TiDB {
					continue // TiDB runs the subqueries of this statement while it explains it
				}
				byKey := p.Statement == "take" || p.Statement == "extend" || strings.HasPrefix(p.Statement, "settle")
				text := strings.Join(p.Lines, "\n")
				if p.WholeTable != (whole && !byKey) || strings.Contains(text, "falldue_lane") != (!whole && !byKey) || !strings.Contains(p.SQL, "falldue_tasks") || p.Err != nil {
					t.Errorf("the plan of %q reads the whole table %v, want %v; error %v:\n%s\n%s", p.Statement, p.WholeTable, whole && !byKey, p.Err, p.SQL, text)
				}
			}
		}
		rows, err := b.db.Query(analyze)
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		check(false)
		if f := b.findings(i)["claims"]; len(f) != 1 || f[0].Level != ops.Fine {
			t.Errorf("claims: %+v", f)
		}
		drop := "drop index falldue_lane"
		if b.db.DriverName() == "mysql" {
			drop += " on falldue_tasks"
		}
		b.db.MustExec(drop)
		check(true)
		if f := b.findings(i)["claims"]; len(f) != 1 || f[0].Level != ops.Attention || !strings.Contains(f[0].Text, "queue default read a whole table") {
			t.Errorf("claims without the index: %+v", f)
		}
	})
}

// TestExplainNamesTheStatementsOfWorkers: also those under limits, which live workers announce,
// and none of them changes anything.
func TestExplainNamesTheStatementsOfWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("mail", 3, 0, time.Minute) // due, and nobody handles them
		for _, key := range []string{"a", "b", ""} {
			for _, kind := range []string{"charge", "ship"} {
				b.enqueue(kind, falldue.EnqueueOptions{Key: key, Delay: 10 * time.Hour})
			}
		}
		before := b.tasks()
		i := b.ops(nil)
		claims := map[string][]string{
			testdb.Postgres: {"sweep", "look", "claim", "claim_in_slot"}, testdb.SQLite: {"sweep", "look", "claim"},
			testdb.MySQL: {"sweep", "next_lane", "look", "claim"}, testdb.MariaDB: {"sweep", "next_lane", "look", "claim"}, testdb.TiDB: {"sweep", "next_lane", "look", "claim"},
		}[engine]
		changes := []string{"take", "extend", "settle_done", "settle_alike", "settle_each"}
		check := func(want ...[]string) {
			t.Helper()
			plans, err := i.Explain(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range plans {
				if p.Err != nil || len(p.Lines) == 0 || p.SQL == "" {
					t.Errorf("%q: %+v", p.Statement, p)
				}
				got = append(got, p.Statement)
			}
			if got, want := slices.Compact(got), slices.Concat(want...); !slices.Equal(got, want) {
				t.Errorf("the statements are %q, want %q", got, want)
			}
		}
		alone := changes
		if engine == testdb.Postgres { // where claims are one statement
			alone = changes[1:]
		}
		check(claims, alone)

		stopCharge := b.start(falldue.Config{}, handle(falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(5), falldue.Rate(10, time.Hour).PerKey()}}, succeed, "charge"))
		stopShip := b.start(falldue.Config{}, handle(falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}}, succeed, "ship"))
		b.workers(i, "two workers", announced(2))
		limited := []string{"read_permits", "claim_with_limits", "claim_in_order"}
		check(claims, limited, []string{"take_permits"}, changes)
		if after := b.tasks(); after != before {
			t.Errorf("the table had\n%s\nand has\n%s", before, after)
		}
		var taken int
		if err := b.db.Get(&taken, "select count(*) from falldue_permits where token <> 0"); err != nil || taken != 0 {
			t.Errorf("%d permits are taken, error %v", taken, err)
		}
		stopCharge()
		stopShip()
	})
}

// TestExplainByEachDriver: plans are text, and are read, whatever driver returns them.
func TestExplainByEachDriver(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, driver := range testdb.Drivers(engine) {
			b := backlogIn(t, testdb.OpenDriver(t, engine, driver))
			b.add("mail", 3, 0, time.Minute)
			drop := "drop index falldue_lane"
			if b.db.DriverName() == "mysql" {
				drop += " on falldue_tasks"
			}
			b.db.MustExec(drop)
			plans, err := b.ops(nil).Explain(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				if p.Statement != "claim" {
					continue
				}
				text := strings.Join(p.Lines, "\n")
				if !p.WholeTable || strings.Contains(text, "&[") || strings.Contains(text, "0x") {
					t.Errorf("by %s it reads the whole table %v:\n%s", driver, p.WholeTable, text)
				}
			}
		}
	})
}

// tasks returns the rows of all tasks as text.
func (b backlog) tasks() string {
	b.t.Helper()
	rows, err := b.db.QueryContext(b.t.Context(), "select * from falldue_tasks order by id")
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var text strings.Builder
	for rows.Next() {
		cells, err := sqlx.SliceScan(rows)
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintf(&text, "%v\n", cells)
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return text.String()
}
