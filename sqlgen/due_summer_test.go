package sqlgen

import (
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
)

// berlin makes a time zone with the summer time of Berlin in 2026, for a server without
// the tables of the world's zones.
var berlin = []string{
	"do get_lock('falldue summer', 60)",
	"set @zone = (select max(Time_zone_id) from mysql.time_zone_name where Name = 'Falldue/Berlin')",
	"insert into mysql.time_zone (Use_leap_seconds) select 'N' from dual where @zone is null",
	"set @new = last_insert_id()",
	"insert into mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) select @new, 0, 3600, 0, 'CET' from dual where @zone is null",
	"insert into mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) select @new, 1, 7200, 1, 'CEST' from dual where @zone is null",
	"insert into mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) select @new, 1774746000, 1 from dual where @zone is null",
	"insert into mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) select @new, 1792890000, 0 from dual where @zone is null",
	"insert into mysql.time_zone_name (Name, Time_zone_id) select 'Falldue/Berlin', @new from dual where @zone is null",
	"do release_lock('falldue summer')",
	"set time_zone = 'Falldue/Berlin'",
}

// The nights in which summer time begins and ends there.
var nights = []time.Time{time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)}

// posixZone returns a zone of PostgreSQL's in which summer time begins, or ends, at a
// moment: its clock cannot be set.
func posixZone(change time.Time, begins bool) string {
	day := func(t time.Time) string { return fmt.Sprintf("J%d/%s", min(t.YearDay(), 365), t.Format("15:04:05")) }
	if local := change.Add(time.Hour); begins {
		return "CET-1CEST," + day(local) + "," + day(local.AddDate(0, 4, 0))
	}
	local := change.Add(2 * time.Hour)
	return "CET-1CEST," + day(local.AddDate(0, -4, 0)) + "," + day(local)
}

// TestDueAcrossChangesOfSummerTime: on both nights, before and after the change, rows wait
// for their delay as it passes, neither an hour less nor an hour more.
func TestDueAcrossChangesOfSummerTime(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		predicates := map[string]string{}
		for _, column := range []string{"instant", "local", "utc"} {
			predicate, err := Due(d, formula(t, "1h * n"), DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: column, UTC: column == "utc"})
			if err != nil {
				t.Fatal(err)
			}
			predicates[column] = predicate
		}
		postgres := d.Name() == dialect.Postgres
		switch {
		case d.Name() == dialect.SQLite:
			t.Skip("SQLite knows UTC only")
		case postgres:
			run(t, db, "create temporary table tasks (attempts int, instant timestamptz, local timestamp, utc timestamp)")
		default:
			run(t, db, "create temporary table tasks (attempts int, instant timestamp(6) null, local datetime(6), utc datetime(6))")
			if _, err := db.ExecContext(t.Context(), "set time_zone = 'Europe/Berlin'"); err != nil {
				run(t, db, berlin...)
			}
		}
		var zone string
		if !postgres {
			if err := db.GetContext(t.Context(), &zone, "select @@time_zone"); err != nil {
				t.Fatal(err)
			}
		}
		var clock time.Time
		for i, night := range nights {
			for _, since := range []time.Duration{-90 * time.Minute, -30 * time.Minute, 30 * time.Minute, 90 * time.Minute, 150 * time.Minute, 5 * time.Hour} {
				now, offset := night.Add(since), func(at time.Time) time.Duration { // of local time
					if at.Before(night) == (i == 0) {
						return time.Hour
					}
					return 2 * time.Hour
				}
				if postgres {
					if err := db.GetContext(t.Context(), &clock, "select now()"); err != nil {
						t.Fatal(err)
					}
					now = clock.UTC()
					change := now.Add(-since).Truncate(time.Second)
					zone = posixZone(change, i == 0)
					offset = func(at time.Time) time.Duration {
						if at.Before(change) == (i == 0) {
							return time.Hour
						}
						return 2 * time.Hour
					}
					night = change
				}
				for _, n := range []int{0, 1, 2, 12} {
					for _, beyond := range []time.Duration{-time.Minute, time.Minute, 50 * time.Minute, -50 * time.Minute} {
						written := now.Add(-time.Duration(n)*time.Hour - beyond)
						run(t, db, "delete from tasks")
						if !postgres {
							run(t, db, "set time_zone = '+00:00'", fmt.Sprintf("set timestamp = %d", now.Unix()))
						}
						const layout = "2006-01-02 15:04:05"
						run(t, db, fmt.Sprintf("insert into tasks values (%d, '%s', '%s', '%s')", n, written.Format(layout)+utcSuffix(postgres), written.Add(offset(written)).Format(layout), written.Format(layout)))
						run(t, db, setZone(postgres, zone))
						for column, predicate := range predicates {
							inTwice := i == 1 && written.Sub(night).Abs() <= time.Hour // the hour that comes twice
							if inTwice && (column == "local" || d.Name() == dialect.TiDB) {
								continue
							}
							var due bool
							if err := db.GetContext(t.Context(), &due, "select count(*) > 0 from tasks where "+predicate); err != nil {
								t.Fatal(err)
							}
							if due != (beyond > 0) {
								t.Errorf("%v after the change of %v, %d attempts: the column %s of a row written %v ago is due: %v", since, night, n, column, now.Sub(written), due)
							}
						}
					}
				}
			}
		}
	})
}

func utcSuffix(postgres bool) string {
	if postgres {
		return "+00"
	}
	return ""
}

func setZone(postgres bool, zone string) string {
	if postgres {
		return "set timezone to '" + zone + "'"
	}
	return "set time_zone = '" + zone + "'"
}
