package systemtest

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// refusals are what makes an engine refuse what is written into a task: statements that
// create triggers, and the codes of errors that these raise if a text ends with one.
type refusals struct {
	settle, claim []string
	codes         []string
}

func refusalsOf(engine string) refusals {
	mysql := refusals{
		settle: []string{`create trigger refuse before update on falldue_tasks for each row begin
			declare code int;
			if new.last_error like 'poison %' then
				set code = substr(new.last_error, 8);
				signal sqlstate '45000' set mysql_errno = code;
			end if;
		end`},
		claim: []string{`create trigger refuse before update on falldue_tasks for each row begin
			declare code int;
			if new.claimed_by <> '' and new.payload like '%poison %' then
				set code = replace(substring_index(new.payload, ' ', -1), '"', '');
				signal sqlstate '45000' set mysql_errno = code;
			end if;
		end`},
		// Raised by a statement, duplicate, too long, check, no table, packet too large;
		// deadlock, lock wait, table full, statement timeout; lost connection.
		codes: []string{"1644", "1062", "1406", "3819", "1146", "1153", "1213", "1205", "1114", "3024", "2013"},
	}
	switch engine {
	case testdb.Postgres:
		return refusals{
			settle: []string{`create function refuse() returns trigger language plpgsql as $$ begin
				if new.last_error like 'poison %' then raise exception 'no' using errcode = substr(new.last_error, 8); end if;
				return new; end $$`,
				`create trigger refuse before update on falldue_tasks for each row execute function refuse()`},
			claim: []string{`create function refuse() returns trigger language plpgsql as $$ begin
				if new.claimed_by <> '' and new.payload::text like '%poison %' then
					raise exception 'no' using errcode = substr(new.payload::text, 9, 5); end if;
				return new; end $$`,
				`create trigger refuse before update on falldue_tasks for each row execute function refuse()`},
			// Raised, unique, check, too long, no table, corrupt; canceled, lock, deadlock,
			// disk full; lost connection.
			codes: []string{"P0001", "23505", "23514", "22001", "42P01", "XX001", "57014", "55P03", "40P01", "53100", "08006"},
		}
	case testdb.SQLite:
		return refusals{
			settle: []string{
				`create trigger abort before update on falldue_tasks when new.last_error = 'poison abort' begin select raise(abort, 'no'); end`,
				`create trigger undo before update on falldue_tasks when new.last_error = 'poison rollback' begin select raise(rollback, 'no'); end`,
				`create trigger twice before update on falldue_tasks when new.last_error = 'poison unique' begin insert into falldue_migrations select * from falldue_migrations; end`,
			},
			claim: []string{
				`create trigger abort before update on falldue_tasks when new.claimed_by <> '' and new.payload = '"poison abort"' begin select raise(abort, 'no'); end`,
				`create trigger undo before update on falldue_tasks when new.claimed_by <> '' and new.payload = '"poison rollback"' begin select raise(rollback, 'no'); end`,
				`create trigger twice before update on falldue_tasks when new.claimed_by <> '' and new.payload = '"poison unique"' begin insert into falldue_migrations select * from falldue_migrations; end`,
			},
			codes: []string{"abort", "rollback", "unique"},
		}
	default:
		return mysql
	}
}

// TestRefusedSettlementDelaysNoOtherTask: the database refuses the settlements of some
// tasks, with errors of all classes. The others are settled, Run returns, and the tasks
// run again.
func TestRefusedSettlementDelaysNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("it has no triggers")
		}
		db := testdb.Open(t, engine)
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{
			Lease: 5 * time.Second, ShutdownTimeout: 100 * time.Millisecond, Concurrency: 100, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		refuse := refusalsOf(engine)
		for _, statement := range refuse.settle {
			db.MustExec(statement)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.ParseDeferred("delay if(n < 3, 0, 1h)")})
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error {
			switch {
			case task.Args >= len(refuse.codes):
				return errors.New("fine")
			case task.Attempt == 1:
				return errors.New("poison " + refuse.codes[task.Args])
			}
			return falldue.Snooze(time.Hour)
		})
		args := make([]int, 50)
		for i := range args {
			args[i] = i
		}
		receipts, err := kind.EnqueueMany(t.Context(), q, args)
		if err != nil {
			t.Fatal(err)
		}
		stop := runUntil(t, q)
		for i, r := range receipts {
			if i >= len(refuse.codes) {
				waitFor(t, "the others to be settled", func() bool { return info(t, q, r.ID).Attempts == 3 && info(t, q, r.ID).ClaimedBy == "" })
			}
		}
		for i, code := range refuse.codes {
			waitFor(t, "the task refused with "+code+" to run again", func() bool { return info(t, q, receipts[i].ID).State == falldue.StateSnoozed })
			if i := info(t, q, receipts[i].ID); i.Attempts != 1 {
				t.Errorf("the refused attempt of the task refused with %s does not count: attempts are %d", code, i.Attempts)
			}
			waitFor(t, "the log to have the task refused with "+code, func() bool {
				return strings.Contains(log.String(), "task="+strconv.FormatInt(receipts[i].ID, 10)+" ") && strings.Contains(log.String(), "the task runs again")
			})
		}
		stop()
	})
}

// TestRefusedClaimDelaysNoOtherTask: the database refuses to let some tasks in the middle
// of a lane be claimed, with errors of all classes. The others run, in this lane and in
// another one, the log names the refused ones, and they run when the database lets them.
func TestRefusedClaimDelaysNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("it has no triggers")
		}
		db := testdb.Open(t, engine)
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{
			Concurrency: 100, DoneRetention: time.Hour, PollInterval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		refuse := refusalsOf(engine)
		for _, statement := range refuse.claim {
			db.MustExec(statement)
		}
		kind, plain := falldue.NewKind[string]("k", falldue.KindConfig{}), falldue.NewKind[string]("plain", falldue.KindConfig{})
		var ran sync.Map // ids
		for _, k := range []falldue.Kind[string]{kind, plain} {
			falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
				ran.Store(task.ID, true)
				return nil
			})
		}
		args := make([]string, 1000)
		poison := map[int]string{}
		for i, code := range refuse.codes {
			poison[500+i*i] = code
			args[500+i*i] = "poison " + code
		}
		receipts, err := kind.EnqueueMany(t.Context(), q, args)
		if err != nil {
			t.Fatal(err)
		}
		others, err := plain.EnqueueMany(t.Context(), q, make([]string, 10))
		if err != nil {
			t.Fatal(err)
		}
		stop := runUntil(t, q)
		for i, r := range append(receipts, others...) {
			if poison[i] == "" {
				waitFor(t, "task "+strconv.Itoa(i)+" to run", func() bool { _, ok := ran.Load(r.ID); return ok })
			}
		}
		late, err := kind.Enqueue(t.Context(), q, "")
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a later task of the lane to run", func() bool { _, ok := ran.Load(late.ID); return ok })
		waitFor(t, "the log", func() bool { return strings.Contains(log.String(), "refuses the claims of some tasks") })
		stop()
		for i := range poison {
			if _, ok := ran.Load(receipts[i].ID); ok {
				t.Errorf("task %d ran, which the database refuses with %s", i, poison[i])
			}
		}

		for _, trigger := range []string{"refuse", "abort", "undo", "twice"} {
			_, _ = db.Exec("drop trigger if exists " + trigger + map[bool]string{true: " on falldue_tasks"}[engine == testdb.Postgres])
		}
		defer runUntil(t, q)()
		for i := range poison {
			waitFor(t, "a task that is no longer refused", func() bool { _, ok := ran.Load(receipts[i].ID); return ok })
		}
	})
}
