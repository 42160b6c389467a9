package sqlgen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// backlog fills a queue with waiting tasks: 4 kinds, 25 levels of attempts,
// all of them failed just now.
func backlog(t *testing.T, db *sqlx.DB, s dialect.Server, rows int) {
	t.Helper()
	clock, table := s.Clock(), tables.Name(s, "tasks")
	const batch = 1000
	for from := 0; from < rows; from += batch {
		var values []string
		for i := from; i < from+batch; i++ {
			values = append(values, fmt.Sprintf("('default', 'kind%d', %d, %s, %s, '{}')",
				i%4, i/4%25, clock.Shift(clock.Now, fmt.Sprint(-i)), clock.Now))
		}
		if _, err := db.ExecContext(t.Context(), "insert into "+table+" (queue, kind, attempts, updated_at, created_at, payload) values "+strings.Join(values, ",")); err != nil {
			t.Fatal(err)
		}
	}
	analyze := map[dialect.Name]string{dialect.Postgres: "analyze " + table, dialect.SQLite: "analyze", dialect.MySQL: "analyze table " + table, dialect.MariaDB: "analyze table " + table, dialect.TiDB: "analyze table " + table + " all columns"}
	rs, err := db.QueryContext(t.Context(), analyze[s.Name()])
	if err != nil {
		t.Fatal(err)
	}
	for rs.Next() { // MySQL and MariaDB answer with a table
	}
	if err := rs.Close(); err != nil {
		t.Fatal(err)
	}
}

// plan is the server's plan of a statement, as text in lower case.
func plan(t *testing.T, db *sqlx.DB, s dialect.Server, stmt sqlgen.Stmt, values sqlgen.Values, rows []sqlgen.Row) string {
	t.Helper()
	explain := map[dialect.Name]string{dialect.Postgres: "explain ", dialect.SQLite: "explain query plan ", dialect.MySQL: "explain format=traditional ", dialect.MariaDB: "explain ", dialect.TiDB: "explain "}
	rs, err := db.QueryContext(t.Context(), explain[s.Name()]+stmt.SQL, stmt.Bind(values, rows)...)
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

// TestPlansAreIndexRanges: what polls the table reads ranges of its one index,
// and never the table, however many tasks wait. What settles finds its rows by
// the primary key, also where the statistics are of a time before the claims.
func TestPlansAreIndexRanges(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		backlog(t, db, s, 20_000)
		power := formula(t, "15s + n^4")
		lane := sqlgen.Values{"queue": "default", "worker": "me", "lease": int64(1), "limit": 100,
			"state": "open", "priority": 0, "kind": "kind1", "policy": "", "attempts": 3, "since": int64(0)}
		var claim string
		if s.Caps.Lateral {
			claim = plan(t, db, s, sqlgen.Claim(s, sqlgen.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{power}}), lane, []sqlgen.Row{
				{"open", int64(0), "kind1", "", int64(3), int64(0), int64(0)}, {"open", int64(0), "kind2", "", int64(1), int64(0), int64(0)},
			})
		} else {
			claim = plan(t, db, s, sqlgen.ClaimLane(s, tables, &power), lane, nil)
		}
		sweep := plan(t, db, s, sqlgen.Sweep(s, tables), lane, nil)
		// A large batch, of a worker that the statistics do not know.
		var fences []sqlgen.Row
		for id := range int64(500) {
			fences = append(fences, sqlgen.Row{id + 1, int64(1)})
		}
		settle := plan(t, db, s, sqlgen.Delete(s, tables, len(fences)), lane, fences)

		want := map[string][3][]string{
			// A claim reads the index by all its columns; a sweep jumps in it; a
			// settle reads by the primary key.
			testdb.Postgres: {{"index scan using falldue_lane", "attempts = l.attempts", "updated_at >="}, {"index", "falldue_lane", "row("}, {}},
			testdb.MySQL:    {{"range", "falldue_lane"}, {"using index for group-by"}, {"range", "primary"}},
			testdb.MariaDB:  {{"range", "falldue_lane"}, {"using index for group-by"}, {"range", "primary"}},
			// TiDB reads the index entries of all that waits, beside the data.
			testdb.TiDB:   {{"indexrangescan", "index:falldue_lane", "limit_"}, {"indexrangescan", "index:falldue_lane", "streamagg"}, {"batch_point_get"}},
			testdb.SQLite: {{"using index falldue_lane", "updated_at>?"}, {"using covering index falldue_lane", "(state,priority,kind,policy,attempts)>("}, {"integer primary key"}},
		}[engine]
		forbidden := map[string][]string{
			testdb.Postgres: {"seq scan on falldue_tasks", "sort", "join filter"},
			testdb.MySQL:    {"filesort", "temporary"}, testdb.MariaDB: {"filesort"},
			testdb.SQLite: {"scan falldue_tasks", "temp b-tree"},
			testdb.TiDB:   {"tablefullscan", "sort_", "topn_", "hashagg"},
		}[engine]
		for i, p := range []string{claim, sweep, settle} {
			name := []string{"claim", "sweep", "settle"}[i]
			for _, w := range want[i] {
				if !strings.Contains(p, w) {
					t.Errorf("the plan of the %s has no %q:\n%s", name, w, p)
				}
			}
			for _, f := range forbidden {
				// A settle may read a small table whole, once, but must not compare
				// each of its rows with the batch.
				if strings.Contains(p, f) && (name != "settle" || f == "join filter") {
					t.Errorf("the plan of the %s has a %q:\n%s", name, f, p)
				}
			}
		}
	})
}
