package statements_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestClaimsStopAtTheirLimit: on PostgreSQL claims and cleanings read a lane in the order of the index, and
// no more of it than they take, however large the lane is and however its tasks are mixed with the tasks of other
// lanes in the table. A claim's plan is kept, and not made anew for each claim.
func TestClaimsStopAtTheirLimit(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	s := migrated(t, db)
	const kinds = 4
	table, rows := tables.Name(s, "tasks"), 0
	values := statements.Values{
		"queue": "default", "worker": "me", "lease": int64(1), "limit": 500, "skip": int64(0), "keep": int64(0), "upto": int64(4e15), "since": int64(0), "slot": int64(2),
	}
	lane := statements.Lane{State: statements.StateOpen, Kind: "kind1"}
	statements.SetLane(values, lane)
	wanted := &statements.WantedLane{Lane: lane, Running: statements.StateOpen, Most: 1 << 30, Room: 500}
	batch := func(columns statements.Columns[statements.WantedLane]) []statements.Row {
		return columns.Rows(1, func(int) *statements.WantedLane { return wanted })
	}
	claim := statements.ClaimParams{Tables: tables}
	inSlot := claim
	inSlot.InSlot = true
	for _, size := range []int{1_000, 20_000} {
		run(t, db, fmt.Sprintf(`insert into %s (queue, kind, payload, updated_at) select 'default', 'kind' || i %% %d, to_json(repeat('x', 200)), now() - i * interval '1 millisecond'
			from generate_series(1, %d) i`, table, kinds, kinds*size-rows))
		rows = kinds * size
		run(t, db, "analyze "+table)
		for name, c := range map[string]struct {
			stmt statements.Stmt
			rows []statements.Row
		}{
			"claim":          {statements.Claim(s, claim), batch(statements.LaneColumns)},
			"claim in slot":  {statements.Claim(s, inSlot), batch(statements.LaneColumns)},
			"claim, limited": {statements.FindDue(s, claim), batch(statements.LaneColumns)},
			"cleaning":       {statements.Clean(s, tables), nil},
			"due in lane":    {statements.DueIn(s, tables), nil},
		} {
			modes := []string{"force_generic_plan", "force_custom_plan"}
			if c.rows == nil { // with known values, the planner decides on purpose how much to read
				modes = modes[:1]
			}
			for _, mode := range modes {
				p := planAfter(t, db, 0, mode, c.stmt, values, c.rows)
				if !strings.Contains(p, "index scan using falldue_lane") || strings.Contains(p, "bitmap heap scan") || strings.Contains(p, "sort") {
					t.Errorf("lanes of %d tasks: the %s, with %s, may read a whole lane:\n%s", size, name, mode, p)
				}
			}
			if c.rows != nil {
				few := maps.Clone(values)
				few["limit"] = 1
				planAfter(t, db, 6, "auto", c.stmt, few, c.rows)
			}
		}
	}
}
