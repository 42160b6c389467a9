package sqlgen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
)

// article is the formula of the arctan article's query.
const article = "917m * atan(n^3 / 15)"

func TestDueReads(t *testing.T) {
	t.Parallel()
	const us = "case when %s between 1 and 2147483647 then"
	for _, c := range []struct {
		engine     dialect.Name
		params     DueParams
		start, end string
	}{
		{dialect.Postgres, DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "updated_at"},
			`"updated_at" <= statement_timestamp() - (` + fmt.Sprintf(us, `"attempts"`), `* interval '1 microsecond'`},
		{dialect.Postgres, DueParams{Table: "t", AttemptsColumn: `a"b`, UpdatedAtColumn: "u.v", UTC: true},
			`"t"."u.v" <= (statement_timestamp() at time zone 'UTC') - (` + fmt.Sprintf(us, `"t"."a""b"`), `* interval '1 microsecond'`},
		{dialect.MySQL, DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "a`b"},
			"(unix_timestamp(`a``b`) * 1000000 <= (timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - (" + fmt.Sprintf(us, "`attempts`"), "end)), 0) / 1000000), interval 2 hour))"},
		{dialect.MariaDB, DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "u", UTC: true},
			"`u` <= date_sub(utc_timestamp(6), interval (" + fmt.Sprintf(us, "`attempts`"), "end) microsecond)"},
		{dialect.SQLite, DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "u"},
			`julianday("u") <= julianday('now') - (` + fmt.Sprintf(us, `"attempts"`), "end) / 86400.0"},
	} {
		got, err := Due(dialectOf(t, c.engine), formula(t, article), c.params)
		if err != nil || !strings.HasPrefix(got, c.start) || !strings.HasSuffix(got, c.end) {
			t.Errorf("%s: %s (%v)\nwant %s … %s", c.engine, got, err, c.start, c.end)
		}
	}
	for want, params := range map[string]DueParams{
		"sqlgen: the attempts column: must not be empty":                {UpdatedAtColumn: "u"},
		"sqlgen: the updated-at column: must not be empty":              {AttemptsColumn: "a"},
		"sqlgen: the attempts column: \"a\\x00\": must not contain NUL": {AttemptsColumn: "a\x00", UpdatedAtColumn: "u"},
	} {
		if _, err := Due(dialectOf(t, dialect.MySQL), formula(t, "n"), params); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The query of the article, in its own words on MySQL and MariaDB, and in
// the other engines': on the article's table ours has to pick the same rows.
func TestDuePicksTheRowsOfTheArticle(t *testing.T) {
	t.Parallel()
	queries := map[dialect.Name]string{
		dialect.MySQL:    "SELECT id FROM tasks WHERE NOT done AND updated_at < DATE_SUB(NOW(), INTERVAL 917 * atan(pow(attempts, 3)/15) MINUTE) ORDER BY id",
		dialect.Postgres: "SELECT id FROM tasks WHERE NOT done AND updated_at < now() - 917 * atan(power(attempts, 3) / 15) * interval '1 minute' ORDER BY id",
		dialect.SQLite:   "SELECT id FROM tasks WHERE NOT done AND julianday(updated_at) < julianday('now') - 917 * atan(pow(attempts, 3) / 15) / 1440 ORDER BY id",
	}
	queries[dialect.MariaDB] = queries[dialect.MySQL]
	queries[dialect.TiDB] = queries[dialect.MySQL]
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		blob := "blob"
		if d.Name() == dialect.Postgres {
			blob = "bytea"
		}
		run(t, db, "create temporary table tasks (id bigint primary key, done boolean, updated_at timestamp, attempts int, task "+blob+")")
		fillTasks(t, d, db)
		predicate, err := Due(d, formula(t, article), DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "updated_at"})
		if err != nil {
			t.Fatal(err)
		}
		var theirs, ours []int64
		if err := db.SelectContext(t.Context(), &theirs, queries[d.Name()]); err != nil {
			t.Fatal(err)
		}
		if err := db.SelectContext(t.Context(), &ours, "select id from tasks where not done and "+predicate+" order by id"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("the article's query picks other rows than ours:\n%s", diff)
		}
		// The rows were made so that every other one that is not done is due.
		if want := 3 * len(fillAttempts); len(ours) != want {
			t.Errorf("%d rows are due, want %d", len(ours), want)
		}
	})
}

var fillAttempts = []int{0, 1, 2, 3, 4, 5, 11, 40, 1000}

// fillTasks makes rows that are two minutes, one hour and ten hours on either
// side of being due, and one row that is done, for each number of attempts.
// Two minutes, since the article's query rounds to whole minutes on MySQL.
func fillTasks(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
	t.Helper()
	f := formula(t, article)
	var rows []string
	id := 0
	for _, n := range fillAttempts {
		for _, beyond := range []int64{2, -2, 60, -60, 600, -600, 0} {
			id++
			age := f.Micros(int64(n)) + beyond*60e6
			var moment string
			switch d.Name() {
			case dialect.Postgres:
				moment = fmt.Sprintf("now() - %d * interval '1 microsecond'", age) // PostgreSQL 12 reads no larger number of them
			case dialect.SQLite:
				moment = fmt.Sprintf("datetime('now', '%d seconds')", -age/1e6)
			default:
				moment = fmt.Sprintf("now(6) - interval %d microsecond", age)
			}
			rows = append(rows, fmt.Sprintf("(%d, %t, %s, %d, 'x')", id, beyond == 0, moment, n))
		}
	}
	run(t, db, "insert into tasks values "+strings.Join(rows, ", "))
}

// Whatever type the columns have, and in whatever zone the session is, a row
// is due when its moment and the delay are over, to the second.
func TestDueOnColumnsOfEveryType(t *testing.T) {
	t.Parallel()
	attemptTypes := map[dialect.Name][]string{
		dialect.Postgres: {"smallint", "int", "bigint", "numeric", "double precision"},
		dialect.MySQL:    {"tinyint", "int unsigned", "bigint unsigned", "decimal(10,2)", "double"},
		dialect.SQLite:   {"integer", "real", ""},
	}
	attemptTypes[dialect.MariaDB] = attemptTypes[dialect.MySQL]
	attemptTypes[dialect.TiDB] = attemptTypes[dialect.MySQL]
	// The type of a moment, the value for now, and whether it is UTC.
	type moment struct {
		kind, now string
		utc       bool
	}
	momentTypes := map[dialect.Name][]moment{
		dialect.Postgres: {{"timestamptz", "now()", false}, {"timestamp", "localtimestamp", false}, {"timestamp", "now() at time zone 'UTC'", true}},
		dialect.MySQL:    {{"timestamp(6)", "now(6)", false}, {"datetime(6)", "now(6)", false}, {"datetime(6)", "utc_timestamp(6)", true}},
		dialect.SQLite:   {{"text", "now", false}, {"datetime", "now", true}},
	}
	momentTypes[dialect.MariaDB] = momentTypes[dialect.MySQL]
	momentTypes[dialect.TiDB] = momentTypes[dialect.MySQL]
	zones := map[dialect.Name]string{
		dialect.Postgres: "set time zone 'Asia/Kathmandu'", dialect.MySQL: "set time_zone = '+05:45'", dialect.MariaDB: "set time_zone = '+05:45'", dialect.TiDB: "set time_zone = '+05:45'",
		dialect.SQLite: "select 1",
	}
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		run(t, db, zones[d.Name()])
		table := 0
		for _, attempts := range attemptTypes[d.Name()] {
			for _, m := range momentTypes[d.Name()] {
				table++
				name := fmt.Sprintf("tasks%d", table)
				run(t, db, fmt.Sprintf("create temporary table %s (id int, attempts %s null, updated_at %s null)", name, attempts, m.kind))
				// 1m * n: the row with n attempts waits n minutes. The ages
				// are in seconds.
				var want []int64
				for i, row := range []struct {
					attempts string
					age      int
					due      bool
				}{
					{"0", 2, true}, {"0", -20, false}, {"null", 2, true}, {"1", 62, true}, {"1", 40, false}, {"2", 122, true}, {"2", 100, false},
					{"100", 6002, true}, {"100", 5980, false},
				} {
					value := fmt.Sprintf("%s - interval '%d' second", m.now, row.age)
					if d.Name() == dialect.SQLite {
						value = fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '%d seconds')", -row.age)
					}
					run(t, db, fmt.Sprintf("insert into %s values (%d, %s, %s)", name, i, row.attempts, value))
					if row.due {
						want = append(want, int64(i))
					}
				}
				predicate, err := Due(d, formula(t, "1m * n"), DueParams{Table: name, AttemptsColumn: "attempts", UpdatedAtColumn: "updated_at", UTC: m.utc})
				if err != nil {
					t.Fatal(err)
				}
				var got []int64
				if err := db.SelectContext(t.Context(), &got, fmt.Sprintf("select id from %s where %s order by id", name, predicate)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("attempts %s, updated_at %s: rows %v are due, want %v", attempts, m.kind, got, want)
				}
			}
		}
	})
}

// The longest delay is 100 years, which no moment of a table reaches: the
// predicate has to be false then, not an error or NULL.
func TestDueAtTheLongestDelay(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		kind := "timestamp"
		if d.Name() == dialect.SQLite {
			kind = "text"
		}
		run(t, db, "create temporary table tasks (attempts bigint, updated_at "+kind+")", "insert into tasks values (9000000000, current_timestamp)")
		predicate, err := Due(d, formula(t, "exp(n)"), DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "updated_at"})
		if err != nil {
			t.Fatal(err)
		}
		var due *bool
		if err := db.GetContext(t.Context(), &due, "select "+predicate+" from tasks"); err != nil {
			t.Fatal(err)
		}
		if due == nil || *due {
			t.Errorf("the predicate is %v, want false", due)
		}
		run(t, db, "update tasks set attempts = attempts + 1 where "+predicate)
	})
}
