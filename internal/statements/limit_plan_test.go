package statements_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// fillLimits stores tasks of a key with very many, and of others with few, and the permits and
// unique keys of thousands of keys.
func fillLimits(t *testing.T, db *sqlx.DB, s dialect.Server) {
	t.Helper()
	const hot, others, batch = 20_000, 2000, 1000
	clock := s.Clock()
	insert := func(table, columns string, n int, row func(i int) string) {
		for from := 0; from < n; from += batch {
			var values []string
			for i := range batch {
				values = append(values, row(from+i))
			}
			run(t, db, "insert into "+tables.Name(s, table)+" ("+columns+") values "+strings.Join(values, ","))
		}
	}
	insert("tasks", "queue, state, kind, task_key, updated_at, created_at, payload", hot+others, func(i int) string {
		key := "hot"
		if i >= hot {
			key = fmt.Sprint("key", i%(others/2))
		}
		return fmt.Sprintf("('default', 'open', 'kind1', '%s', %s, %s, '{}')", key, clock.Shift(clock.Now, fmt.Sprint(-i)), clock.Now)
	})
	insert("permits", "name, n", 5000, func(i int) string { return fmt.Sprintf("('limit%d', %d)", i/5, i%5) })
	insert("uniques", "hash, task_id, token, was, held_until", 5000, func(i int) string {
		return fmt.Sprintf("('%043d', %d, %d, 0, %s)", i, i+1, i+1, clock.Now)
	})
}

// sortedTies is the part of PostgreSQL's plan that sorts tasks with one anchor.
var sortedTies = regexp.MustCompile(`sort +\(cost=.*\n +sort key: \S+\.id \n.*index scan using falldue_lane.*\n +index cond: .* and \(updated_at = (\$\d+|\(initplan \d+\)\.col1)\)\)`)

// TestPlansOfLimits: a claim under limits reads ranges of the lanes that it asks for, however
// many tasks wait in a lane that it leaves out. No statement of limits and of unique keys reads
// a whole table, with statistics or without.
func TestPlansOfLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if s.Name() == dialect.Postgres {
			for _, table := range []string{"tasks", "permits", "uniques"} {
				run(t, db, "alter table "+tables.Name(s, table)+" set (autovacuum_enabled = off)")
			}
		}
		fillLimits(t, db, s)
		const batch = 4 // with a larger batch, reading the whole tables might cost less
		lanes := make([]statements.WantedLane, 100)
		for i := range lanes {
			lanes[i] = statements.WantedLane{Lane: statements.Lane{State: statements.StateOpen, Kind: "kind1", Key: fmt.Sprint("key", i)}, Running: statements.StateOpen, Most: 1 << 30, Room: 2}
		}
		rows := func(n int, row func(i int) statements.Row) (list []statements.Row) {
			for i := range n {
				list = append(list, row(i))
			}
			return list
		}
		key := statements.Key{TaskID: 7, Fence: 1}
		hash := func(i int) string { return fmt.Sprintf("%043d", i) }
		limits := rows(batch, func(i int) statements.Row { return statements.LimitColumns.Row(new(fmt.Sprint("limit", i))) })
		grants := rows(batch, func(i int) statements.Row {
			return statements.GrantColumns.Row(&statements.Grant{Permit: int64(i) + 1, Key: key})
		})
		permits := rows(batch, func(i int) statements.Row { return statements.IDColumns.Row(&statements.Key{TaskID: int64(i) + 1}) })
		hashes := rows(batch, func(i int) statements.Row { return statements.HashColumns.Row(new(hash(i))) })
		drops := rows(batch, func(i int) statements.Row {
			return statements.DroppedKeyColumns.Row(&statements.UniqueKey{Hash: hash(i), Token: 7})
		})
		releases := rows(batch, func(i int) statements.Row {
			return statements.ReleasedKeyColumns.Row(&statements.UniqueKey{Hash: hash(i), TaskID: 7})
		})
		values := statements.Values{"queue": "default", "token": int64(7), "wait": int64(7), "after": int64(0), "keep": int64(0), "from": "kind a running of ", "before": "kind a running of!", "limit": 20, "id": int64(7), "since": int64(0)}
		statements.SetLane(values, lanes[0].Lane)
		type planned struct {
			stmt statements.Stmt
			rows []statements.Row
		}
		all := map[string]planned{
			"permits":        {statements.Permits(s, tables, batch), limits},
			"permit range":   {statements.PermitRange(s, tables), nil},
			"permits of":     {statements.PermitsOf(s, tables, batch), limits},
			"take permits":   {statements.TakePermits(s, tables, batch), grants},
			"extend permits": {statements.ExtendPermits(s, tables, batch), permits},
			"return permits": {statements.ReturnPermits(s, tables, batch), grants},
			"taken permits":  {statements.TakenPermits(s, tables, batch), permits},
			"permit page":    {statements.PermitPage(s, tables), nil},
			"drop permits":   {statements.DropPermits(s, tables, batch), permits},
			"holders":        {statements.Holders(s, tables, batch), hashes},
			"lock keys":      {statements.LockKeys(s, tables, batch), hashes},
			"hold waiting":   {statements.HoldWaiting(s, tables, batch), permits},
			"keys of token":  {statements.KeysOfToken(s, tables, batch), hashes},
			"drop keys":      {statements.DropKeys(s, tables, batch), drops},
			"release keys":   {statements.ReleaseKeys(s, tables, batch), releases},
			"withdraw":       {statements.Withdraw(s, tables, batch), permits},
		}
		// The statements that claim from lanes read only ranges of the lanes' index.
		claims := map[string]planned{"claim lane": {statements.ClaimLane(s, tables, nil), nil}}
		wanted := statements.LaneColumns.Rows(len(lanes), func(i int) *statements.WantedLane { return &lanes[i] })
		values["room"] = 2
		sequences := make([]statements.SequenceLane, batch)
		for i := range sequences {
			sequences[i] = statements.SequenceLane{Lane: lanes[i].Lane, Begun: int64(i % 2 * 7)}
		}
		delayed := statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{formula(t, "15s + n^4")}}
		all["next tasks"] = planned{statements.NextTasks(s, delayed, batch), statements.SequenceColumns.Rows(batch, func(i int) *statements.SequenceLane { return &sequences[i] })}
		if statements.ClaimsAtOnce(s) || s.Caps.JSONLateral {
			claims["find due"] = planned{statements.FindDue(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{formula(t, "0")}}), wanted}
		}
		if statements.UnitesLanes(s) {
			claims["unite lanes"] = planned{statements.UniteLanes(s, tables, 8), wanted[:8]}
		}
		ranges := map[string][]string{
			testdb.Postgres: {"index scan using falldue_lane", "updated_at >="}, testdb.MySQL: {"falldue_lane"}, testdb.MariaDB: {"range", "falldue_lane"},
			testdb.TiDB: {"indexrangescan", "index:falldue_lane"}, testdb.SQLite: {"index falldue_lane (queue=? and state=? and task_key=?", "updated_at>?"},
		}[engine]
		// A join that reads a whole table, or sorts the tasks of a lane.
		whole := map[string]string{
			testdb.Postgres: `seq scan on falldue_|\bsort\b`, testdb.SQLite: `scan (t|k|u|falldue_\w+)\b|temp b-tree`, testdb.TiDB: `tablefullscan|topn_`,
			testdb.MySQL: `\b(t|k|falldue_\w+) <nil> all |filesort`, testdb.MariaDB: `\b(t|k|falldue_\w+) all |filesort`,
		}[engine]
		check := func(statistics string) {
			for i, list := range []map[string]planned{all, claims} {
				for name, c := range list {
					plans := map[string]string{"run once": plan(t, db, s, c.stmt, values, c.rows)}
					if engine == testdb.Postgres {
						plans["prepared"] = preparedPlan(t, db, "auto", c.stmt, values, c.rows)
					}
					for way, p := range plans {
						if slices.Contains([]string{"lock keys"}, name) {
							p = strings.ReplaceAll(p, "sort", "order") // by the keys of the batch, so that all lock them in one order
						}
						if name == "next tasks" {
							p = sortedTies.ReplaceAllString(p, "")
						}
						if found := regexp.MustCompile(whole).FindString(p); found != "" {
							t.Errorf("with %s the plan of %q, %s, has %q:\n%s", statistics, name, way, found, p)
						}
						for _, w := range ranges {
							if i == 1 && !strings.Contains(p, w) {
								t.Errorf("with %s the plan of %q, %s, has no %q:\n%s", statistics, name, way, w, p)
							}
						}
					}
				}
			}
		}
		check("no statistics")
		for _, table := range []string{"tasks", "permits", "uniques"} {
			switch s.Name() {
			case dialect.Postgres:
				run(t, db, "analyze "+tables.Name(s, table))
			case dialect.SQLite:
				run(t, db, "analyze")
			default:
				run(t, db, "analyze table "+tables.Name(s, table))
			}
		}
		check("statistics")
	})
}

// TestPermitsAreNotCompiled: PostgreSQL compiles a statement whose cost it expects to be above 100,000, which takes
// longer than the statement. It expects less of those that read permits, with statistics or without.
func TestPermitsAreNotCompiled(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	s := migrated(t, db)
	table := tables.Name(s, "permits")
	run(t, db, "alter table "+table+" set (autovacuum_enabled = off)")
	run(t, db, "insert into "+table+" (name, n) select 'limit' || i / 100, i % 100 from generate_series(0, 99999) i")
	limits := statements.LimitColumns.Rows(500, func(i int) *string { return new(fmt.Sprint("limit", i)) })
	for _, statistics := range []string{"no statistics", "statistics"} {
		for name, stmt := range map[string]statements.Stmt{"permits": statements.Permits(s, tables, len(limits)), "permits of": statements.PermitsOf(s, tables, len(limits))} {
			for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
				p := planAfter(t, db, 0, mode, stmt, nil, limits)
				cost := regexp.MustCompile(`cost=[0-9.]+\.\.([0-9.]+)`).FindStringSubmatch(p)
				if n, err := strconv.ParseFloat(cost[1], 64); err != nil || n > 50_000 {
					t.Errorf("with %s the plan of %q, %s, has the cost %s, error %v:\n%s", statistics, name, mode, cost[1], err, p)
				}
			}
		}
		run(t, db, "analyze "+table)
	}
}
