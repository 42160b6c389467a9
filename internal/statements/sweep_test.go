package statements_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// sweep sweeps the queue default.
func sweep(t *testing.T, db queryer, s dialect.Server) (heads []statements.Head) {
	t.Helper()
	stmt, rows := sweepOf(s, "default")
	for _, f := range read(t, db, statements.FoundColumns, stmt, statements.Values{"page": 100_000}, rows) {
		if f.Queue != "default" {
			t.Fatalf("a sweep of default found %+v", f)
		}
		heads = append(heads, f.Head)
	}
	return heads
}

// sweepOf returns the statement that sweeps queues, with its batch.
func sweepOf(s dialect.Server, queues ...string) (statements.Stmt, []statements.Row) {
	places := make([]statements.Place, len(queues))
	for i, queue := range queues {
		places[i] = statements.FirstPlace(queue)
	}
	return statements.Sweep(s, tables, len(places)), statements.PlaceColumns(s).Rows(len(places), func(i int) *statements.Place { return &places[i] })
}

// finishedLanes returns the lanes of the queue default in a final state, on servers with Caps.LooseScan the first one.
func finishedLanes(t *testing.T, db queryer, s dialect.Server, state string) (heads []statements.Head) {
	t.Helper()
	stmt, place := statements.FinishedLanes(s, tables, 1), statements.FirstFinishedPlace("default", state)
	values := statements.Values{"queue": place.Queue, "state": state, "page": 100_000}
	if statements.SetLane(values, place.Lane); s.Caps.LooseScan {
		return read(t, db, statements.HeadColumns, stmt, values, nil)
	}
	for _, f := range read(t, db, statements.FoundColumns, stmt, values, []statements.Row{statements.PlaceColumns(s).Row(&place)}) {
		heads = append(heads, f.Head)
	}
	return heads
}

// steps sweeps the queue default with NextLane and returns the anchors of lanes.
func steps(t *testing.T, db queryer, s dialect.Server) map[statements.Lane]int64 {
	t.Helper()
	stmt, found, values := statements.NextLane(s, tables), map[statements.Lane]int64{}, statements.Values{"queue": "default"}
	for last := (statements.Lane{}); ; {
		statements.SetLane(values, last)
		heads := read(t, db, statements.HeadColumns, stmt, values, nil)
		if len(heads) == 0 {
			return found
		}
		last = heads[0].Lane
		found[last] = heads[0].Anchor
	}
}

// TestNextLanesAreThoseOfASweep: NextLane finds the lanes that Sweep finds, one in each run.
func TestNextLanesAreThoseOfASweep(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Caps.LooseScan {
			t.Skip("its sweeps jump in one statement")
		}
		clock, table := s.Clock(), tables.Name(s, "tasks")
		ago := 0
		for _, queue := range []string{"default", "a", "z"} {
			for _, state := range []string{"open", "snoozed", "done", "dead", "cancelled"} {
				for _, priority := range []int{-32768, -1, 0, 32767} {
					for _, kind := range [][2]string{{"", "a"}, {"c:1", "a"}, {"", "b.b"}, {"", "z"}, {"c:1", "z"}, {"c:2", "z"}} { // key and kind
						for _, policy := range []string{"", "0123456789abcdef"} {
							ago++
							insert := "insert into " + table + " (queue, state, task_key, priority, kind, policy, attempts, updated_at, created_at, payload) values "
							for i, attempts := range []int{0, 1, 1, 2147483647, -3} {
								if i > 0 {
									insert += ", "
								}
								insert += fmt.Sprintf("('%s', '%s', '%s', %d, '%s', '%s', %d, %s, %s, '{}')", queue, state, kind[0], priority, kind[1], policy, attempts,
									clock.Shift(clock.Now, strconv.Itoa(-1000*ago-i)), clock.Now)
							}
							run(t, db, insert)
						}
					}
				}
			}
		}
		want := map[statements.Lane]int64{}
		for _, h := range sweep(t, db, s) {
			want[h.Lane] = h.Anchor
		}
		if len(want) != 2*4*6*2*4 {
			t.Fatalf("the sweep found %d lanes", len(want))
		}
		if diff := cmp.Diff(want, steps(t, db, s)); diff != "" {
			t.Errorf("the sweep (-) and the steps (+) found\n%s", diff)
		}
	})
}

// TestNextLaneReadsLittle: NextLane reads little, whatever statistics the engine has.
func TestNextLaneReadsLittle(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		counts := map[string]string{testdb.MySQL: "performance_schema", testdb.MariaDB: "information_schema"}[engine]
		if counts == "" {
			t.Skip("it does not count what a session reads, or has no NextLane")
		}
		for _, statistics := range []string{fresh, none, stale} {
			t.Run(statistics, func(t *testing.T) {
				db := testdb.Open(t, engine)
				s := migrated(t, db)
				fill(t, db, s, statistics)
				conn, err := db.Connx(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				read := func() (sum int) {
					err := conn.GetContext(t.Context(), &sum, "select sum(variable_value) from "+counts+`.session_status
						where variable_name in ('handler_read_key', 'handler_read_first', 'handler_read_next', 'handler_read_prev')`)
					if err != nil {
						t.Fatal(err)
					}
					return sum
				}
				before := read()
				lanes := len(steps(t, conn, s))
				if n := read() - before; lanes != 100 || n > 11*(lanes+1) {
					t.Errorf("to find %d lanes among 10,000 tasks and more, it read %d entries", lanes, n)
				}
			})
		}
	})
}
