package periodic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// yearOne and farAhead are moments that nobody means, as an engine writes them.
var (
	yearOne = map[string]string{
		testdb.Postgres: "'0001-01-01 UTC'", testdb.MySQL: "'0001-01-01'", testdb.MariaDB: "'0001-01-01'", testdb.TiDB: "'0001-01-01'",
		testdb.SQLite: "-62135596800000000",
	}
	farAhead = map[string]string{
		testdb.Postgres: "'infinity'", testdb.MySQL: "'9999-12-31'", testdb.MariaDB: "'9999-12-31'", testdb.TiDB: "'9999-12-31'",
		testdb.SQLite: "9223372036854775807",
	}
)

// TestARowOfNonsenseStopsNoOther: a person has edited a schedule's row. Its ticks fail with an
// error that names the row and the column, and other schedules continue. A row that has been
// removed is stored again.
func TestARowOfNonsenseStopsNoOther(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		edits := map[string]string{
			"started_at":  yearOne[engine],
			"next_at":     yearOne[engine],
			"defined_at":  farAhead[engine],
			"started_at ": farAhead[engine],
			"missed":      "2147483647",
			"missed ":     "-2",
			"alone":       "7",
			"per_tick":    "7",
			"paused":      "7",
		}
		if engine == testdb.SQLite { // which takes anything
			edits["missed  "], edits["last_task"] = "'many'", "1.5"
		}
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "bad", Spec: "@every 1h", Task: report.Params("bad")},
			periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("r")})
		tick(t, s)
		var want []string
		for column, value := range edits {
			column = strings.TrimSpace(column)
			db.MustExec("update falldue_schedules set " + column + " = " + value + " where name = 'bad'")
			what := column + " = " + value
			clock.Jump(t, time.Hour)
			if _, err := s.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "the row of schedule bad cannot be used: column "+column) {
				t.Errorf("%s: error %v", what, err)
			}
			want = append(want, "r")
			wantReports(t, q, what, want...)
			list, err := periodic.List(t.Context(), q)
			if err != nil || len(list) != 2 || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), column) || list[1].Err != nil {
				t.Errorf("%s: listed are %+v (error %v)", what, list, err)
			}
			if err := periodic.Resume(t.Context(), q, "bad"); err == nil || !strings.Contains(err.Error(), column) {
				t.Errorf("%s: resumed with error %v", what, err)
			}
			late := newScheduler(t, q, periodic.Schedule{Name: "bad", Spec: "@every 1h", Task: report.Params("bad")})
			if _, err := late.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), column) {
				t.Errorf("%s: a process that starts then: error %v", what, err)
			}
			if err := periodic.Remove(t.Context(), q, "bad"); err != nil {
				t.Fatal(err)
			}
			tick(t, late) // it has never seen a row that can be used
			if list, err := periodic.List(t.Context(), q); err != nil || len(list) != 2 || list[0].Err != nil || !list[0].Next.After(list[0].Now) {
				t.Fatalf("%s: after it was removed, listed are %+v (error %v)", what, list, err)
			}
		}
	})
}

// TestARowThatNoStatementFinds: SQLite keeps a blob in a column of times, and reads it as a
// number, which it then does not compare with.
func TestARowThatNoStatementFinds(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q := newQueue(t, db, falldue.Config{})
	s := newScheduler(t, q, periodic.Schedule{Name: "r", Spec: "@every 1h", Task: report.Params("r")})
	tick(t, s)
	db.MustExec("update falldue_schedules set next_at = x'00'")
	tick(t, s) // as if another process had been faster
	if _, err := s.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "the row of schedule r cannot be used") {
		t.Errorf("error %v", err)
	}
	wantReports(t, q, "its tick is not found")
	db.MustExec("update falldue_schedules set next_at = 0")
	tick(t, s)
	wantReports(t, q, "its tick is found", "r")
}
