package falldue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/worker"
)

// TestEndedRunsAreCounted: those that succeeded, also by DoneTx, and those that failed.
func TestEndedRunsAreCounted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := New(db, Config{PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := NewKind[string]("k", KindConfig{})
		Handle(q, kind, func(ctx context.Context, task Task[string]) error {
			switch task.Args {
			case "fails":
				return errors.New("no")
			case "dies":
				return Discard(errors.New("never"))
			case "snoozes":
				return Snooze(time.Hour)
			case "in a transaction":
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := task.DoneTx(ctx, tx); err != nil {
					return err
				}
				return tx.Commit()
			}
			return nil
		})
		if _, err := kind.EnqueueMany(t.Context(), q, []string{"fails", "dies", "snoozes", "in a transaction", "succeeds", "succeeds"}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		var w *worker.Worker
		for ended := false; !ended; {
			counts, err := q.store.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var open, others int64
			for _, c := range counts {
				if c.State == statements.StateOpen {
					open += c.Tasks
				} else {
					others += c.Tasks
				}
			}
			ended = open == 1 && others == 2 // it waits for its retry, and the others are dead and snoozed
			w = cmp.Or(q.life.Worker(), w)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, want := w.EndedRuns(), (store.Runs{Done: 3, Failed: 2}); got != want {
			t.Errorf("the runs that have ended are %+v, want %+v", got, want)
		}
	})
}

// reader counts how often it is told to read changes.
type reader struct{ told int }

func (r *reader) ReadChanges() { r.told++ }

// TestReadersOfStepsReadAtOnce: a change that this process makes is read at once by the
// reader of a task that package tasktest runs, while it runs.
func TestReadersOfStepsReadAtOnce(t *testing.T) {
	t.Parallel()
	q, one, other := &Queue{}, &reader{}, &reader{}
	stop := q.stepping(one)
	defer q.stepping(other)()
	q.readChanges()
	if one.told != 1 || other.told != 1 {
		t.Fatalf("the readers were told to read %d and %d times, want once each", one.told, other.told)
	}
	stop()
	q.readChanges()
	if one.told != 1 || other.told != 2 {
		t.Errorf("after one has ended, it was told %d times and the other %d times", one.told, other.told)
	}
}

// writes returns how often rows were written, by the server's own count: those of the table
// of tasks, or by the only connection of a pool. MySQL and MariaDB do not count inserts here,
// among which are those into temporary tables.
func writes(t *testing.T, db *sqlx.DB, engine string) (n int) {
	t.Helper()
	query := map[string]string{
		testdb.Postgres: "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables where relname = 'falldue_tasks'",
		testdb.SQLite:   "select total_changes()",
	}[engine]
	if query != "" {
		if err := db.Get(&n, query); err != nil {
			t.Fatal(err)
		}
		return n
	}
	rows, err := db.Query("show session status where Variable_name in ('Handler_update', 'Handler_delete')")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var one int
		if err := rows.Scan(&name, &one); err != nil {
			t.Fatal(err)
		}
		n += one
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSettingAPolicyWritesNoTask: four workers apply a policy to a thousand waiting tasks, and
// write no task. Setting the policy writes one row of the table of changes, and each worker
// announces in its own row that it applies the policy.
func TestSettingAPolicyWritesNoTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		kind := NewKind[int]("mail", KindConfig{Policy: backoff.ParseDeferred("1h")})
		open := func() (*Queue, *sqlx.DB) {
			db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(1) // whose writes the server counts
			q, err := New(db, Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return q, db
		}
		operator, db := open()
		if err := operator.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		const tasks = 1000
		if _, err := kind.EnqueueMany(t.Context(), operator, make([]int, tasks)); err != nil {
			t.Fatal(err)
		}
		db.MustExec("update falldue_tasks set attempts = 1, fence = 1")
		until := func(what string, ok func() bool) {
			t.Helper()
			for end := time.Now().Add(testdb.Patience); !ok(); {
				if time.Now().After(end) {
					t.Fatalf("waited %v for %s", testdb.Patience, what)
				}
				time.Sleep(time.Millisecond)
			}
		}
		var pools []*sqlx.DB
		var workers []*worker.Worker
		for range 4 {
			q, pool := open()
			Handle(q, kind, func(context.Context, Task[int]) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- q.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
			until("the worker to start", func() bool {
				w := q.life.Worker()
				return w != nil && !w.SweptAt().IsZero()
			})
			until("the worker to announce itself", func() bool { // by a row that it writes
				var n int
				if err := db.Get(&n, "select count(*) from falldue_workers"); err != nil {
					t.Fatal(err)
				}
				return n == len(workers)+1
			})
			pools, workers = append(pools, pool), append(workers, q.life.Worker())
		}
		if engine == testdb.Postgres { // which counts with a delay
			until("the server to count", func() bool { return writes(t, db, engine) == 2*tasks })
		}
		count := func() (list []int) {
			for _, pool := range append(pools, db) {
				list = append(list, writes(t, pool, engine))
			}
			return list
		}
		before, start := count(), time.Now()
		slower, err := backoff.ParseOverride("4 * original")
		if err != nil {
			t.Fatal(err)
		}
		change := store.Change{What: statements.ChangePolicy, Value: control.Override{Steps: []control.Step{{Formula: slower}}}.Text()}
		if err := operator.change(t.Context(), Subject{Kind: "mail"}, time.Time{}, change); err != nil {
			t.Fatal(err)
		}
		at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
		for _, w := range workers {
			until("the worker to apply it", func() bool {
				delay, _ := w.DelayOf("default", at)
				return delay == 4*time.Hour
			})
		}
		t.Logf("%s: four workers apply it after %v", engine, time.Since(start))
		want := append([]int(nil), before...)
		if engine == testdb.Postgres {
			if _, err := kind.Enqueue(t.Context(), operator, 1, EnqueueOptions{Delay: time.Hour}); err != nil {
				t.Fatal(err)
			}
			until("the server to count", func() bool { return writes(t, db, engine) > before[4] })
			for i := range want {
				want[i]++ // that of the last enqueue, which shows that all before are counted
			}
		}
		after := count()
		if engine != testdb.Postgres { // the others count the rows of all tables, and a worker announces itself every few seconds
			const others = tasks / 10
			for i, n := range after {
				if n > before[i] && n <= before[i]+others {
					after[i] = before[i]
				}
			}
		}
		if fmt.Sprint(after) != fmt.Sprint(want) {
			t.Errorf("the server has counted %v writes, before %v", after, before)
		}
	})
}
