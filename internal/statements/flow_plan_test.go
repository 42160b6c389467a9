package statements_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestPlansOfFlows: no statement of flows reads all edges, with statistics or without.
func TestPlansOfFlows(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		edges := tables.Name(s, "edges")
		const waiters, members, batch = 4, 5000, 1000
		for w := range waiters {
			run(t, db, fmt.Sprintf("insert into %s (task_id, on_death) values (%d, 0)", tables.Name(s, "flows"), 1_000_000+w))
			for from := 0; from < members; from += batch {
				var values []string
				for m := range batch {
					values = append(values, fmt.Sprintf("(%d, %d)", w*members+from+m, 1_000_000+w))
				}
				run(t, db, "insert into "+edges+" (task_id, waiter) values "+strings.Join(values, ","))
			}
		}
		ids := statements.IDColumns.Rows(500, func(i int) *statements.Key { return &statements.Key{TaskID: int64(i)} })
		some := statements.IDColumns.Rows(2, func(i int) *statements.Key { return &statements.Key{TaskID: 1_000_000 + int64(i)} })
		keys := statements.EdgeKeyColumns.Rows(500, func(i int) *statements.Edge { return &statements.Edge{Member: int64(i), Waiter: 1_000_000} })
		values := statements.Values{"outcome": "done", "deleted": 0, "after": int64(0), "limit": 1000, "task_id": int64(7000), "waiter": int64(1_000_001), "was": "", "id": int64(7)}
		all := map[string]struct {
			stmt  statements.Stmt
			rows  []statements.Row
			alias string // of the edges
		}{
			"mark edges":       {statements.MarkEdges(s, tables, len(ids)), ids, "t"},
			"waiters of":       {statements.WaitersOf(s, tables, len(ids)), ids, "t"},
			"waiters by id":    {statements.WaitersByID(s, tables, len(some)), some, "e"},
			"waiters":          {statements.Waiters(s, tables), nil, "e"},
			"neighbors before": {statements.Neighbors(s, tables, len(some), false), some, "t"},
			"neighbors after":  {statements.Neighbors(s, tables, len(ids), true), ids, "t"},
			"edges of":         {statements.EdgesOf(s, tables, len(some)), some, "t"},
			"drop edges":       {statements.DropEdges(s, tables, len(keys)), keys, "t"},
			"edge page":        {statements.EdgePage(s, tables), nil, "falldue_edges"},
			"correct edge":     {statements.CorrectEdge(s, tables), nil, "falldue_edges"},
			"members":          {statements.Members(s, tables), nil, "falldue_edges"},
			"pending edges":    {statements.PendingEdges(s, tables), nil, "e"},
		}
		reads := func(p, alias string) bool {
			pattern := map[dialect.Name]string{
				dialect.Postgres: `seq scan on falldue_edges`, dialect.SQLite: `scan ` + alias + `\b`, dialect.TiDB: `tablefullscan.*table:` + alias + `\b`,
				dialect.MySQL: `\b` + alias + ` <nil> all `, dialect.MariaDB: `\b` + alias + ` all `,
			}[s.Name()]
			return regexp.MustCompile(pattern).MatchString(p)
		}
		check := func(statistics string) {
			for name, c := range all {
				p := plan(t, db, s, c.stmt, values, c.rows)
				if name == "drop edges" && strings.Contains(p, "hash join") {
					continue // half a percent of all: a larger table is not read
				}
				if reads(p, c.alias) {
					t.Errorf("with %s %q reads all edges:\n%s", statistics, name, p)
				}
			}
		}
		check("no statistics")
		switch s.Name() {
		case dialect.Postgres:
			run(t, db, "analyze "+edges)
		case dialect.SQLite:
			run(t, db, "analyze")
		default:
			run(t, db, "analyze table "+edges)
		}
		check("statistics")
	})
}
