package periodic_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/tasktest"
)

// TestOneTaskATick: of eight processes, some of which die while they tick, exactly one
// enqueues the task of each tick of each schedule.
func TestOneTaskATick(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		const processes, ticks = 8, 40
		dsn := testdb.DSN(t, engine)
		mine := open(t, engine, dsn)
		clock := tasktest.NewClock(t, mine)
		q := newQueue(t, mine, falldue.Config{})
		var schedules []periodic.Schedule
		for _, name := range []string{"a", "b", "c"} { // which are due together
			schedules = append(schedules, periodic.Schedule{Name: name, Spec: "@every 1h", Task: report.Params(name)})
		}
		survivor := newScheduler(t, q, schedules...)
		var all []*periodic.Scheduler
		for range processes {
			db := open(t, engine, dsn)
			tasktest.NewClock(t, db)
			all = append(all, newScheduler(t, newQueue(t, db, falldue.Config{}), schedules...))
		}
		tick(t, survivor)
		for n := 1; n <= ticks; n++ {
			clock.Jump(t, time.Hour) // the test itself takes less
			var group sync.WaitGroup
			start := make(chan struct{})
			for i, s := range all {
				group.Go(func() {
					ctx, kill := context.WithCancel(t.Context())
					defer kill()
					<-start
					if i%2 == 0 {
						time.AfterFunc(rand.N(5*time.Millisecond), kill)
					}
					if _, err := s.Tick(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				})
			}
			close(start)
			group.Wait()
			tick(t, survivor)
			stored := map[string]int{}
			for _, name := range reports(t, q) {
				stored[name]++
			}
			if want := map[string]int{"a": n, "b": n, "c": n}; !maps.Equal(stored, want) {
				t.Fatalf("after %d ticks the tasks are %v", n, stored)
			}
		}
	})
}

// open opens another pool on a database.
func open(t *testing.T, engine, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestARefusedScheduleStopsNoOther: the database does not take the tasks of one schedule.
func TestARefusedScheduleStopsNoOther(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		s := newScheduler(t, q,
			periodic.Schedule{Name: "bad", Spec: "@every 1h", Task: report.Params("bad")},
			periodic.Schedule{Name: "good", Spec: "@every 1h", Task: report.Params("good")})
		tick(t, s)
		// As if a newer release had stored it.
		db.MustExec("update falldue_schedules set spec = '@solstice' where name = 'bad'")
		clock.Jump(t, time.Hour)
		if _, err := s.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "schedule bad") || !strings.Contains(err.Error(), "@solstice") {
			t.Errorf("error %v, want one that names the schedule", err)
		}
		wantReports(t, q, "one schedule cannot be read", "good")

		db.MustExec("update falldue_schedules set spec = '@every 1h' where name = 'bad'")
		refuse, ok := refuseBad[engine]
		if !ok {
			t.Skip("there are no triggers on this engine, so that it cannot be made to refuse some tasks")
		}
		for statement := range strings.SplitSeq(refuse, ";;") {
			db.MustExec(statement)
		}
		clock.Jump(t, time.Hour)
		if _, err := s.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "schedule bad") {
			t.Errorf("error %v, want one that names the schedule", err)
		}
		wantReports(t, q, "one is refused", "good", "good")
		if engine == testdb.Postgres {
			db.MustExec("drop trigger refuse on falldue_tasks")
		} else {
			db.MustExec("drop trigger refuse")
		}
		tick(t, s)
		wantReports(t, q, "it is not refused any more", "good", "good", "bad")
	})
}

// refuseBad has the statements that make an engine with triggers refuse tasks with the argument
// "bad".
var refuseBad = map[string]string{
	testdb.Postgres: `create function refuse() returns trigger language plpgsql as 'begin raise exception ''refused''; end';;
		create trigger refuse before insert on falldue_tasks for each row when (new.payload::text = '"bad"') execute function refuse()`,
	testdb.MySQL:   refuseBadOnMySQL,
	testdb.MariaDB: refuseBadOnMySQL,
	testdb.SQLite:  `create trigger refuse before insert on falldue_tasks when new.payload = '"bad"' begin select raise(abort, 'refused'); end`,
}

const refuseBadOnMySQL = `create trigger refuse before insert on falldue_tasks for each row
	begin if new.payload = '"bad"' then signal sqlstate '45000' set message_text = 'refused'; end if; end`
