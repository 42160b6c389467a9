package statements_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// backlog adds tasks to a queue: 4 kinds, 25 levels of attempts, all of them
// failed just now.
func backlog(t *testing.T, db *sqlx.DB, s dialect.Server, state string, rows int) {
	t.Helper()
	clock, table := s.Clock(), tables.Name(s, "tasks")
	const batch = 1000
	for from := 0; from < rows; from += batch {
		var values []string
		for i := from; i < min(from+batch, rows); i++ {
			values = append(values, fmt.Sprintf("('default', '%s', 'kind%d', %d, %s, %s, '{}')",
				state, i%4, i/4%25, clock.Shift(clock.Now, fmt.Sprint(-i)), clock.Now))
		}
		run(t, db, "insert into "+table+" (queue, state, kind, attempts, updated_at, created_at, payload) values "+strings.Join(values, ","))
	}
}

// run runs a statement and reads its result. Some statements have one on MySQL and MariaDB.
func run(t *testing.T, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, statement string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%v\n%.500s", err, statement)
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%.500s", err, statement)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
}

// The statistics of a table that an engine may plan with.
const (
	fresh = "fresh statistics"
	none  = "no statistics"
	stale = "statistics of a table with ten finished tasks"
)

// fill fills a queue with waiting tasks and leaves statistics of the given kind.
func fill(t *testing.T, db *sqlx.DB, s dialect.Server, statistics string) {
	t.Helper()
	table := tables.Name(s, "tasks")
	analyze := map[dialect.Name]string{
		dialect.Postgres: "analyze " + table, dialect.SQLite: "analyze", dialect.MySQL: "analyze table " + table,
		dialect.MariaDB: "analyze table " + table, dialect.TiDB: "analyze table " + table + " all columns",
	}[s.Name()]
	// The server must not update the statistics by itself.
	hold := map[dialect.Name]string{
		dialect.Postgres: "alter table " + table + " set (autovacuum_enabled = off)",
		dialect.MySQL:    "alter table " + table + " stats_auto_recalc = 0", dialect.MariaDB: "alter table " + table + " stats_auto_recalc = 0",
	}[s.Name()]
	if hold != "" {
		run(t, db, hold)
	}
	switch statistics {
	case fresh:
		backlog(t, db, s, "open", 10_000)
		run(t, db, analyze)
	case none:
		backlog(t, db, s, "open", 10_000)
		if s.Name() == dialect.MySQL || s.Name() == dialect.MariaDB {
			run(t, db, "delete from mysql.innodb_index_stats where database_name = database()")
			run(t, db, "delete from mysql.innodb_table_stats where database_name = database()")
			run(t, db, "flush tables "+table)
		}
	case stale:
		backlog(t, db, s, "done", 10)
		run(t, db, analyze)
		backlog(t, db, s, "open", 20_000)
	}
}

// plan returns the server's plan of a statement, as text in lower case.
func plan(t *testing.T, db *sqlx.DB, s dialect.Server, stmt statements.Stmt, values statements.Values, rows []statements.Row) string {
	t.Helper()
	explain := map[dialect.Name]string{dialect.Postgres: "explain ", dialect.SQLite: "explain query plan ", dialect.MySQL: "explain format=traditional ", dialect.MariaDB: "explain ", dialect.TiDB: "explain "}
	text := explain[s.Name()] + stmt.SQL
	if s.Name() != dialect.TiDB {
		return planText(t, db, text, stmt.Bind(values, rows)...)
	}
	session, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	// Otherwise the plan has the values of subqueries that TiDB ran while it planned, and not their plans.
	if _, err := session.ExecContext(t.Context(), "set tidb_opt_enable_non_eval_scalar_subquery = on"); err != nil {
		t.Fatal(err)
	}
	return planText(t, session, text, stmt.Bind(values, rows)...)
}

// planText returns the result of an EXPLAIN.
func planText(t *testing.T, db sqlx.QueryerContext, explain string, args ...any) string {
	t.Helper()
	rs, err := db.QueryContext(t.Context(), explain, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rs.Close() }()
	var text strings.Builder
	for rs.Next() {
		columns, err := sqlx.SliceScan(rs)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			if b, ok := c.([]byte); ok {
				c = string(b)
			}
			fmt.Fprint(&text, c, " ")
		}
		text.WriteByte('\n')
	}
	if err := rs.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.ToLower(text.String())
}

// preparedPlan returns the plan that PostgreSQL has for a prepared statement after
// it ran often. The other engines plan with parameters, or at each execution.
func preparedPlan(t *testing.T, db *sqlx.DB, mode string, stmt statements.Stmt, values statements.Values, rows []statements.Row) string {
	t.Helper()
	return planAfter(t, db, 10, mode, stmt, values, rows) // the first five are planned for their parameters
}

// planAfter is preparedPlan after so many runs.
func planAfter(t *testing.T, db *sqlx.DB, runs int, mode string, stmt statements.Stmt, values statements.Values, rows []statements.Row) string {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var literals []string
	for _, arg := range stmt.Bind(values, rows) {
		literals = append(literals, "'"+strings.ReplaceAll(fmt.Sprint(arg), "'", "''")+"'")
	}
	call := "execute planned (" + strings.Join(literals, ", ") + ")"
	run(t, conn, "set plan_cache_mode = "+mode)
	run(t, conn, "prepare planned as "+stmt.SQL)
	defer run(t, conn, "deallocate planned")
	for range runs {
		run(t, conn, "begin")
		run(t, conn, call)
		run(t, conn, "rollback")
	}
	p := planText(t, conn, "explain "+call)
	if mode != "force_custom_plan" && (runs > 5 || mode != "auto") && rows != nil && !keptPlan(t, conn) {
		t.Errorf("with %s, PostgreSQL plans each execution anew:\n%s", mode, p)
	}
	return p
}

// keptPlan reports whether PostgreSQL has executed the prepared statement with a plan for all values. Releases before
// 14 do not count such executions.
func keptPlan(t *testing.T, conn *sqlx.Conn) bool {
	t.Helper()
	var release, kept int
	if err := conn.GetContext(t.Context(), &release, "select current_setting('server_version_num')::int"); err != nil {
		t.Fatal(err)
	}
	if release < 14_00_00 {
		return true
	}
	if err := conn.GetContext(t.Context(), &kept, "select generic_plans from pg_prepared_statements where name = 'planned'"); err != nil {
		t.Fatal(err)
	}
	return kept > 0
}

// TestPlansAreIndexRanges: claims and sweeps read ranges of the index and never
// the table, however many tasks wait, and settles find their rows by the primary
// key. That holds for all statistics, and on PostgreSQL for cached plans.
func TestPlansAreIndexRanges(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, statistics := range []string{fresh, none, stale} {
			t.Run(statistics, func(t *testing.T) { checkPlans(t, engine, statistics) })
		}
	})
}

func checkPlans(t *testing.T, engine, statistics string) {
	db := testdb.Open(t, engine)
	s := migrated(t, db)
	fill(t, db, s, statistics)
	power := formula(t, "15s + n^4")
	lane := statements.Values{"queue": "default", "worker": "me", "lease": int64(1), "limit": 100, "skip": int64(0), "page": 1000, "keep": int64(86_400_000_000), "upto": int64(4e15), "since": int64(0), "wait": int64(60_000_000), "slot": int64(2), "running": statements.StateOpen, "most": int64(1 << 30),
		"after": int64(0), "key": "a=1", "key_end": "a=10", "part_first": "a=1/", "part_within": "/a=1/", "part_last": "/a=1",
		"to_state": statements.StateDone, "more": int64(0), "failure": "why", "answer": "[1]",
	}
	statements.SetLane(lane, statements.Lane{State: statements.StateOpen, Kind: "kind1", Attempts: 3})
	claim, lanes := statements.ClaimLane(s, tables, &power), []statements.Row(nil)
	inSlot := claim
	wanted := []statements.WantedLane{
		{Lane: statements.Lane{State: statements.StateOpen, Kind: "kind1", Attempts: 3}, Running: statements.StateOpen, Most: 1 << 30, Room: 100},
		{Lane: statements.Lane{State: statements.StateOpen, Kind: "kind2", Attempts: 1}, Running: statements.StateOpen, Most: 1 << 30, Room: 100},
	}
	look := statements.SinceColumns.Rows(len(wanted), func(i int) *statements.WantedLane { return &wanted[i] })
	if statements.ClaimsAtOnce(s) {
		claim = statements.Claim(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{power}})
		inSlot = statements.Claim(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{power}, InSlot: true})
		lanes = statements.LaneColumns.Rows(len(wanted), func(i int) *statements.WantedLane { return &wanted[i] })
	}
	// A large batch of a worker that the statistics do not contain.
	fences := statements.FenceColumns.Rows(500, func(i int) *statements.Key { return &statements.Key{TaskID: int64(i) + 1, Fence: 1} })
	want := map[string][3][]string{
		// A claim and a cleaning read the index by all its columns; a sweep jumps in it; a
		// settle reads by the primary key.
		testdb.Postgres: {{"index scan using falldue_lane", "|| (attempts)::text) = ", "updated_at >="}, {"index", "falldue_lane", "|| (attempts)::text) > found_1.lane"}, {}},
		testdb.MySQL:    {{"range", "falldue_lane"}, {"using index for group-by"}, {"range", "primary"}},
		testdb.MariaDB:  {{"range", "falldue_lane"}, {"using index for group-by"}, {"range", "primary"}},
		// TiDB reads the index entries of all waiting tasks, next to the data.
		testdb.TiDB:   {{"indexrangescan", "index:falldue_lane", "limit_"}, {"indexrangescan", "index:falldue_lane", "streamagg"}, {"batch_point_get"}},
		testdb.SQLite: {{"index falldue_lane (queue=? and state=? and task_key=?", "updated_at>?"}, {"using covering index falldue_lane", "(state,task_key,priority,kind,policy,attempts,updated_at)>("}, {"integer primary key"}},
	}[engine]
	if s.Caps.LooseScan && engine != testdb.TiDB && statistics == stale {
		// They estimate the number of groups when they open a table. Until they
		// count again, seconds later, they may read all entries of waiting tasks.
		want[1] = []string{"falldue_lane", "using index"}
	}
	one := want[2] // of a batch of one claim
	if engine == testdb.TiDB {
		one = []string{"point_get"}
	}
	if statistics == stale && engine == testdb.SQLite { // a table that seems small may be read whole, once
		want[2] = nil
	}
	forbidden := map[string][]string{
		testdb.Postgres: {"seq scan on falldue_tasks", "sort", "join filter", " filter: ((("},
		testdb.MySQL:    {"filesort", "temporary"}, testdb.MariaDB: {"filesort"},
		testdb.SQLite: {"scan falldue_tasks", "temp b-tree"},
		testdb.TiDB:   {"tablefullscan", "sort_", "topn_", "hashagg"},
	}[engine]
	finished := maps.Clone(lane)
	finished["state"] = "done"
	finishedPlace := statements.FirstFinishedPlace("default", "done")
	finishedLanes, finishedRows := want[1], []statements.Row{statements.PlaceColumns(s).Row(&finishedPlace)}
	switch {
	case s.Caps.LooseScan:
		finishedLanes = []string{"falldue_lane"}
	case engine == testdb.SQLite:
		finishedLanes = []string{"using covering index falldue_lane", "(queue=? and state=? and (task_key,priority,kind,policy,attempts,updated_at)>("}
	}
	sweeping, queues := sweepOf(s, "default")
	many := []string{"default"}
	for i := range 499 {
		many = append(many, fmt.Sprint("queue", i))
	}
	sweepingMany, manyQueues := sweepOf(s, many...)
	wantMany := want[1]
	switch {
	case engine == testdb.TiDB: // it groups the entries of many ranges in a hash table, or in their order
		wantMany = []string{"indexrangescan", "index:falldue_lane"}
	case s.Caps.LooseScan: // whichever reads less
		wantMany = []string{"falldue_lane", "using index"}
	}
	looks := []string{"falldue_lane"}
	since := statements.LaneSince{QueueLane: statements.QueueLane{Queue: "default", Lane: statements.Lane{State: statements.StateOpen, Kind: "kind1", Attempts: 3}}, Wait: 1, Most: 100}
	nearby := map[string][]string{testdb.Postgres: {"falldue_tasks_pkey"}, testdb.MySQL: {"primary"}, testdb.MariaDB: {"primary"}, testdb.SQLite: {"integer primary key"}}[engine]
	for _, c := range []struct {
		name string
		stmt statements.Stmt
		rows []statements.Row
		want []string
	}{
		{"claim", claim, lanes, want[0]}, {"claim in slot", inSlot, lanes, want[0]}, {"look", statements.Heads(s, tables, len(look)), look, want[0]}, {"sweep", sweeping, queues, want[1]}, {"sweep of many", sweepingMany, manyQueues, wantMany},
		{"settle", statements.Delete(s, tables, len(fences)), fences, want[2]}, {"settle of one", statements.SettleAlike(s, tables, 1), fences[:1], one},
		{"cleaning", statements.Clean(s, tables), nil, want[0]}, {"finished lanes", statements.FinishedLanes(s, tables, 1), finishedRows, finishedLanes},
		{"look for running tasks", statements.LookIDs(s, tables, statements.ListParams{Kind: true, Phase: statements.PhaseRunning}), nil, looks},
		{"look for a key", statements.LookIDs(s, tables, statements.ListParams{Key: true}), nil, looks}, {"look for parts", statements.LookIDs(s, tables, statements.ListParams{Key: true, Part: true}), nil, looks},
		{"look nearby", statements.List(s, tables, statements.ListParams{Queue: true, State: true, Key: true, Part: true, Upto: true, Near: true}), nil, nearby},
		{"queues", statements.Queues(s, tables), nil, []string{"falldue_lane"}}, {"count", statements.CountSince(s, tables, 1), statements.LaneSinceColumns.Rows(1, func(int) *statements.LaneSince { return &since }), []string{"falldue_lane"}},
	} {
		if strings.HasPrefix(c.name, "look ") && engine == testdb.Postgres && statistics != fresh {
			continue // it may sort the tasks, and reads a table whole that seems small
		}
		lane := lane
		if c.name == "cleaning" || c.name == "finished lanes" {
			lane = finished
		}
		plans := map[string]string{"run once": plan(t, db, s, c.stmt, lane, c.rows)}
		if engine == testdb.Postgres {
			for _, mode := range []string{"auto", "force_generic_plan"} {
				plans["prepared, "+mode] = preparedPlan(t, db, mode, c.stmt, lane, c.rows)
			}
		}
		for way, p := range plans {
			for _, w := range c.want {
				if !strings.Contains(p, w) {
					t.Errorf("the plan of the %s, %s, has no %q:\n%s", c.name, way, w, p)
				}
			}
			for _, f := range forbidden {
				if !strings.Contains(p, f) {
					continue
				}
				// A settle may read a small table whole, once, but must not compare
				// each of its rows with the batch.
				whole := c.name == "settle" || c.name == "finished lanes" && s.Caps.LooseScan // it sorts a row of each case
				hashed := f == "hashagg" && (c.name == "count" || c.name == "sweep of many")  // of entries that the index has limited
				if !whole && !hashed || f == "join filter" {
					t.Errorf("the plan of the %s, %s, has a %q:\n%s", c.name, way, f, p)
				}
			}
		}
	}
	// A statement that changes a batch of claims takes milliseconds if it finds
	// them by their key or reads the table once. It takes minutes if it reads the
	// table for each claim, or the batch for each row of the table.
	for name, stmt := range map[string]statements.Stmt{
		"take": statements.Take(s, tables, len(fences)), "extend": statements.Extend(s, tables, len(fences)),
		"settle alike": statements.SettleAlike(s, tables, len(fences)), "settle": statements.Settle(s, tables, len(fences)), "delete": statements.Delete(s, tables, len(fences)),
	} {
		rows := fences
		if name == "settle" {
			rows = nil
			for _, f := range fences {
				id, _ := f[0].(int64)
				rows = append(rows, statements.SettleColumns.Row(&statements.Settlement{Key: statements.Key{TaskID: id, Fence: 1}, State: statements.StateOpen}))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		start := time.Now()
		if _, err := db.ExecContext(ctx, stmt.SQL, stmt.Bind(lane, rows)...); err != nil {
			t.Errorf("%s: %v after %v", name, err, time.Since(start))
		}
		cancel()
	}
}
