package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// TestPlansFollowTheTable: on PostgreSQL a prepared statement keeps its plan. A worker
// prepares its statements while the table is empty, and the best plan is to read all of it.
// Then many tasks are stored, and the statistics do not show that.
func TestPlansFollowTheTable(t *testing.T) {
	t.Parallel()
	for _, driver := range testdb.Drivers(testdb.Postgres) {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db := testdb.OpenDriver(t, testdb.Postgres, driver)
			s := migrated(t, db)
			db.SetMaxOpenConns(1) // which has the prepared statements
			db.MustExec("alter table falldue_tasks set (autovacuum_enabled = off)")
			_ = plansReadingTheTable(t, db) // begins a session
			db.MustExec("vacuum falldue_tasks")
			const generic = 10 // runs, of which the first five have plans of their own
			for range generic {
				useAll(t, s)
			}
			if len(plansReadingTheTable(t, db)) == 0 {
				t.Fatal("no plan reads the empty table: this test shows nothing")
			}
			db.MustExec(`insert into falldue_tasks (queue, kind, payload) select 'default', 'k', '{}' from generate_series(1, 200000)`)
			var bad []string
			for deadline := time.Now().Add(testdb.Patience); time.Now().Before(deadline); {
				useAll(t, s)
				if bad = plansReadingTheTable(t, db); len(bad) == 0 {
					return
				}
			}
			t.Errorf("plans still read the whole table:\n%s", strings.Join(bad, "\n"))
		})
	}
}

// useAll runs the statements of a worker. There may be nothing to do for them.
func useAll(t *testing.T, s *Store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	_, _, err := s.Sweep(ctx, []Place{FirstPlace("default")}, 1000)
	must(err)
	for _, slot := range []int64{0, s.SlotName("default", []string{"k"})} {
		_, err = s.Claim(ctx, ClaimParams{Queue: "default", Worker: "me", Lease: time.Minute, Limit: 1, Slot: slot, Sources: []Source{
			{Lane: Lane{State: statements.StateOpen, Kind: "k"}, Delay: NewDelay(sqlgen.Formula{})},
		}})
		must(err)
	}
	none := statements.Settlement{Key: Key{TaskID: -1, Fence: 1}, State: statements.StateDone}
	for _, retained := range []bool{false, true} {
		for _, state := range []string{statements.StateDone, statements.StateDead} {
			none.State = state
			_, err = s.Settle(ctx, "me", []*Settlement{{Settlement: none, RetainDone: retained}})
			must(err)
		}
	}
	_, err = s.Extend(ctx, "me", time.Minute, []Key{none.Key})
	must(err)
	_, err = s.FinishedLanes(ctx, "default", statements.StateDone)
	must(err)
	_, _, err = s.Clean(ctx, CleanParams{Queue: "default", Lane: Lane{State: statements.StateDone, Kind: "k"}, Retention: time.Hour, Limit: MaxBatch})
	must(err)
}

// plansReadingTheTable returns the plans for any arguments of the prepared statements
// of a session that read all tasks.
func plansReadingTheTable(t *testing.T, db *sqlx.DB) (bad []string) {
	t.Helper()
	var prepared []struct{ Name, Statement, Types string }
	if err := db.Select(&prepared, `select name, statement, array_to_string(parameter_types, ' ') as types
		from pg_prepared_statements where statement like '%falldue_tasks%' and statement not like '%insert%' and statement not like '%pg_prepared_statements%'`); err != nil {
		t.Fatal(err)
	}
	db.MustExec("set plan_cache_mode = force_generic_plan")
	for _, p := range prepared {
		args := strings.Fields(p.Types)
		for i, typ := range args {
			args[i] = map[bool]string{true: "'{}'", false: "'0'"}[strings.HasSuffix(typ, "[]")]
		}
		var lines []string
		if err := db.Select(&lines, fmt.Sprintf("explain execute %q (%s)", p.Name, strings.Join(args, ", "))); err != nil {
			t.Fatalf("%v: %s", err, p.Statement)
		}
		if plan := strings.Join(lines, "\n"); strings.Contains(plan, "Seq Scan on falldue_tasks") {
			bad = append(bad, p.Statement, plan)
		}
	}
	db.MustExec("set plan_cache_mode = auto")
	return bad
}
