package statements_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// firstColumns runs a statement and returns the columns that look has it read,
// row by row.
func firstColumns(t *testing.T, db *sqlx.DB, stmt statements.Stmt, values statements.Values, rows []statements.Row, columns ...int) (got [][]string) {
	t.Helper()
	found, err := db.QueryxContext(t.Context(), stmt.SQL, stmt.Bind(values, rows)...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		cells, err := found.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, c := range columns {
			cell := cells[c]
			if b, ok := cell.([]byte); ok {
				cell = string(b)
			}
			row = append(row, fmt.Sprint(cell))
		}
		got = append(got, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, slices.Compare)
	return got
}

// TestOddNamesStandInNobodysWay: a name with a space, which no task gets by
// falldue but which somebody may write into a row, could be taken for the end
// of another one where an index has lanes in one text.
func TestOddNamesStandInNobodysWay(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		clock, now := s.Clock(), s.Clock().Now
		for _, r := range [][3]string{ // queue, state, kind
			{"a", "open", "kind"}, {"z", "open", "kind"},
			{"default", "open", "kind"}, {"default", "open", "kind  0"}, {"default", "snoozed", "open 0 kind"},
			{"default open", "open", "kind"}, {"default open 0 kind", "open", ""}, {"default open 0 kind  0", "open", "kind"},
			{"default", "done", "kind"}, {"default done", "done", "kind"}, {"default done 0 kind", "open", "kind"}, {"default!", "done", "kind"},
		} {
			run(t, db, "insert into "+tables.Name(s, "tasks")+" (queue, state, kind, updated_at, created_at, payload) values ('"+
				r[0]+"', '"+r[1]+"', '"+r[2]+"', "+clock.Shift(now, "-1000000")+", "+now+", '{}')")
		}
		got := firstColumns(t, db, statements.Sweep(s, tables), statements.Values{"queue": "default"}, nil, 0, 2)
		if diff := cmp.Diff([][]string{{"open", "kind"}, {"open", "kind  0"}, {"snoozed", "open 0 kind"}}, got); diff != "" {
			t.Errorf("a sweep found (-want +got)\n%s", diff)
		}
		got = firstColumns(t, db, statements.Clean(s, tables), statements.Values{"queue": "default", "state": "done", "keep": int64(0), "limit": 10}, nil, 0)
		if diff := cmp.Diff([][]string{{"9"}}, got); diff != "" {
			t.Errorf("to be cleaned are (-want +got)\n%s", diff)
		}
		got = firstColumns(t, db, statements.List(s, tables, statements.ListParams{Queue: true, State: true}),
			statements.Values{"queue": "default", "state": "open", "after": int64(0), "limit": 10}, nil, 0)
		if diff := cmp.Diff([][]string{{"3"}, {"4"}}, got); diff != "" {
			t.Errorf("in the list are (-want +got)\n%s", diff)
		}
		lane := statements.Values{"queue": "default", "worker": "me", "lease": int64(1), "limit": 10,
			"state": "open", "priority": 0, "kind": "kind", "policy": "", "attempts": 0, "since": int64(0)}
		claim, rows := statements.ClaimLane(s, tables, nil), []statements.Row(nil)
		if s.Name() == dialect.Postgres {
			claim = statements.Claim(s, statements.ClaimParams{Tables: tables})
			rows = []statements.Row{{"open", int64(0), "kind", "", int64(0), int64(0), int64(-1)}}
		}
		if diff := cmp.Diff([][]string{{"3"}}, firstColumns(t, db, claim, lane, rows, 1)); diff != "" {
			t.Errorf("a claim takes (-want +got)\n%s", diff)
		}
	})
}
