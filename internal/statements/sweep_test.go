package statements_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// found is a lane as a sweep finds it.
type found struct {
	State, Kind, Policy string
	Priority, Attempts  int
	Anchor              int64
}

// steps sweeps the queue default by NextLane.
func steps(t *testing.T, db sqlx.QueryerContext, s dialect.Server) map[string]found {
	t.Helper()
	stmt, lanes := statements.NextLane(s, tables), map[string]found{}
	last := found{}
	for {
		rows, err := db.QueryContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{
			"queue": "default", "state": last.State, "priority": last.Priority, "kind": last.Kind, "policy": last.Policy, "attempts": last.Attempts,
		}, nil)...)
		if err != nil {
			t.Fatal(err)
		}
		more, now := rows.Next(), int64(0)
		if more {
			if err := rows.Scan(&last.State, &last.Priority, &last.Kind, &last.Policy, &last.Attempts, &last.Anchor, &now); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if !more {
			return lanes
		}
		lanes[last.key()] = last
	}
}

func (f found) key() string {
	return fmt.Sprint(f.State, " ", f.Priority, " ", f.Kind, " ", f.Policy, " ", f.Attempts)
}

// TestNextLanesAreThoseOfASweep: a lane a run, NextLane finds what Sweep finds.
func TestNextLanesAreThoseOfASweep(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Caps.LooseScan {
			t.Skip("its sweeps jump by themselves")
		}
		clock, table := s.Clock(), tables.Name(s, "tasks")
		ago := 0
		for _, queue := range []string{"default", "a", "z"} {
			for _, state := range []string{"open", "snoozed", "done", "dead", "cancelled"} {
				for _, priority := range []int{-32768, -1, 0, 32767} {
					for _, kind := range []string{"a", "b.b", "z"} {
						for _, policy := range []string{"", "0123456789abcdef"} {
							ago++
							insert := "insert into " + table + " (queue, state, priority, kind, policy, attempts, updated_at, created_at, payload) values "
							for i, attempts := range []int{0, 1, 1, 2147483647, -3} {
								if i > 0 {
									insert += ", "
								}
								insert += fmt.Sprintf("('%s', '%s', %d, '%s', '%s', %d, %s, %s, '{}')", queue, state, priority, kind, policy, attempts,
									clock.Shift(clock.Now, strconv.Itoa(-1000*ago-i)), clock.Now)
							}
							run(t, db, insert)
						}
					}
				}
			}
		}
		sweep, want := statements.Sweep(s, tables), map[string]found{}
		rows, err := db.QueryxContext(t.Context(), sweep.SQL, sweep.Bind(statements.Values{"queue": "default"}, nil)...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			f, now := found{}, int64(0)
			if err := rows.Scan(&f.State, &f.Priority, &f.Kind, &f.Policy, &f.Attempts, &f.Anchor, &now); err != nil {
				t.Fatal(err)
			}
			want[f.key()] = f
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(want) != 2*4*3*2*4 {
			t.Fatalf("the sweep found %d lanes (error %v)", len(want), err)
		}
		if diff := cmp.Diff(want, steps(t, db, s)); diff != "" {
			t.Errorf("the sweep (-) and the steps (+) found\n%s", diff)
		}
	})
}

// TestNextLaneReadsLittle: whatever the engine knows of the table.
func TestNextLaneReadsLittle(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		counts := map[string]string{testdb.MySQL: "performance_schema", testdb.MariaDB: "information_schema"}[engine]
		if counts == "" {
			t.Skip("it does not tell what a session reads, or has no NextLane")
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
