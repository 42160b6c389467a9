package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// runFile runs the statements of a file, and returns them.
func runFile(t *testing.T, db *sqlx.DB, path string) (statements []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, statement)
		}
		statements = append(statements, statement)
	}
	return statements
}

// next adds a migration to m, as a later release may have it: a column, and an index
// of all rows.
func next(t *testing.T, m *migrations.Migrator, engine string) {
	t.Helper()
	text := "-- +goose Up\nalter table falldue_tasks add column later integer not null default 7;\ncreate index falldue_later on falldue_tasks (later, id);\n" +
		"-- +goose Down\ndrop index falldue_later;\nalter table falldue_tasks drop column later;\n"
	if familyOf(dialect.Name(engine)) == dialect.MySQL {
		text = "-- +goose Up\nalter table falldue_tasks add column later integer not null default 7, add index falldue_later (later, id);\n" +
			"-- +goose Down\nalter table falldue_tasks drop column later;\n"
	}
	if engine == testdb.TiDB { // it cannot add a column and an index of it in one statement
		text = "-- +goose Up\nalter table falldue_tasks add column if not exists later integer not null default 7;\n" +
			"create index if not exists falldue_later on falldue_tasks (later, id);\n" +
			"-- +goose Down\ndrop index falldue_later on falldue_tasks;\nalter table falldue_tasks drop column later;\n"
	}
	if err := m.Add("99999_later.sql", text); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeUnderLoad migrates the tables of every released schema, and of the
// current one, to the current version and one migration further. Two processes do so
// at the same time, while sessions of that release enqueue and finish tasks in its own
// SQL. Workers of this release then finish the rest. No task may be lost, and finished
// tasks must stay as they were.
func TestUpgradeUnderLoad(t *testing.T) {
	folders := schemas(t, released)
	current, err := record(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(folders); n == 0 || filepath.Base(folders[n-1]) != filepath.Base(current) {
		t.Logf("the current schema has not been released; upgrades begin at it and at %d released ones", n)
		folders = append(folders, current)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, engine string) { upgrade(t, engine, folder) })
		})
	}
}

func upgrade(t *testing.T, engine, folder string) {
	dsn, driver := testdb.DSN(t, engine), testdb.Drivers(engine)[0]
	open := func() *sqlx.DB {
		db, err := sqlx.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db, family := open(), string(familyOf(dialect.Name(engine)))
	runFile(t, db, filepath.Join(folder, family+".sql"))
	rows := runFile(t, db, filepath.Join(folder, family+".rows.sql"))
	before := list(t, db)
	enqueue, finish := rows[0], "delete from falldue_tasks where id = "

	// The load: sessions of that release enqueue tasks by the first statement of its
	// rows, and finish some of them.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var enqueued, finished atomic.Int64
	var load sync.WaitGroup
	for i := range 2 {
		session := open()
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := session.Exec(enqueue); err != nil {
					t.Errorf("enqueue while the schema changes: %v", err)
					return
				}
				enqueued.Add(1)
				if i == 0 || n%3 > 0 {
					continue
				}
				var id int64
				if err := session.Get(&id, "select max(id) from falldue_tasks where kind = 'load' and state = 'open'"); err != nil {
					t.Errorf("read while the schema changes: %v", err)
					return
				}
				res, err := session.Exec(finish + fmt.Sprint(id))
				if err != nil {
					t.Errorf("finish while the schema changes: %v", err)
					return
				}
				n, err := res.RowsAffected()
				if err != nil {
					t.Error(err)
				}
				finished.Add(n)
			}
		})
	}
	await(t, "tasks before the migration", func() bool { return enqueued.Load() > 20 })

	// Two processes migrate at the same time.
	var group sync.WaitGroup
	var ran atomic.Int64
	for range 2 {
		m := migrator(t, open(), usual)
		next(t, m, engine)
		group.Go(func() {
			n, err := m.Up(t.Context())
			if err != nil {
				t.Errorf("up: %v", err)
			}
			ran.Add(int64(n))
		})
	}
	group.Wait()
	m := migrator(t, db, usual)
	next(t, m, engine)
	steps := 0
	for _, s := range applied(t, m, true) {
		if strings.Compare(s.Name, filepath.Base(folder)+"~") > 0 {
			steps++
		}
	}
	if int(ran.Load()) != steps || steps == 0 {
		t.Errorf("together they ran %d migrations, want %d", ran.Load(), steps)
	}

	// A worker of this release runs, and enqueues, while the load goes on.
	q, err := falldue.New(open(), falldue.Config{DoneRetention: time.Hour, PollInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var handled sync.Map
	kind := falldue.NewKind[string]("load", falldue.KindConfig{})
	falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
		if _, again := handled.LoadOrStore(task.ID, true); again {
			return errors.New("handled twice")
		}
		return nil
	})
	work, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(work) }()
	already := enqueued.Load()
	for range 20 {
		if _, err := kind.Enqueue(t.Context(), q, "new"); err != nil {
			t.Error(err)
		}
		enqueued.Add(1)
	}
	await(t, "tasks after the migration", func() bool { return enqueued.Load() > already+40 })
	stop()
	load.Wait()
	count := func(where string) (n int64) {
		if err := db.Get(&n, "select count(*) from falldue_tasks where "+where); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const own = "kind = 'load' and "
	defer func() {
		if t.Failed() {
			t.Logf("the tasks at the end: %v", list(t, db))
		}
	}()
	await(t, "all tasks to be finished", func() bool { return count(own+"state = 'open'") == 0 })
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// The sessions of the load do not check who has claimed a task, so both they and
	// the worker may finish it. They delete its row, whereas the worker keeps it.
	kept, ofRows := count(own+"state = 'done'"), int64(1) // the first of the rows was a task of the load
	if kept+finished.Load() != enqueued.Load()+ofRows {
		t.Errorf("%d tasks were enqueued; %d are done and %d were finished before", enqueued.Load()+ofRows, kept, finished.Load())
	}
	t.Logf("%d tasks enqueued, %d finished by sessions of the release, %d by workers of this one", enqueued.Load(), finished.Load(), kept)
	after := list(t, db)
	for id, was := range before {
		if is := after[id]; is != was && !strings.Contains(was, " load ") {
			t.Errorf("a task was changed:\n%s\n%s", was, is)
		}
	}
	if n := count("later <> 7"); n > 0 {
		t.Errorf("%d rows lack the column's default", n)
	}
}

// list returns each task as a text, by id. It reads the columns that all releases have.
func list(t *testing.T, db *sqlx.DB) map[int64]string {
	t.Helper()
	rows, err := db.Queryx(
		"select id, kind, queue, state, policy, priority, attempts, max_attempts, fence, claimed_by, updated_at, created_at, payload from falldue_tasks")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tasks := map[int64]string{}
	for rows.Next() {
		cells, err := rows.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cells {
			if b, ok := c.([]byte); ok {
				cells[i] = string(b)
			}
		}
		id, ok := cells[0].(int64)
		if !ok {
			t.Fatalf("id is %T", cells[0])
		}
		tasks[id] = fmt.Sprintln(cells...)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tasks
}

// await waits until ok returns true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(testdb.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) || t.Failed() {
			t.Fatalf("gave up waiting for %s", what)
		}
		<-tick.C
	}
}

// TestNewerTablesAreLeftAlone: a migrator refuses tables of a version that it does not
// know.
func TestNewerTablesAreLeftAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		newer, older := migrator(t, db, usual), migrator(t, db, usual)
		next(t, newer, engine)
		if _, err := newer.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, act := range map[string]func() error{
			"up":     func() error { _, err := older.Up(t.Context()); return err },
			"down":   func() error { _, err := older.Down(t.Context()); return err },
			"status": func() error { _, err := older.Status(t.Context()); return err },
		} {
			if err := act(); !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "99999") {
				t.Errorf("%s: error %v, want one that names the version", name, err)
			}
		}
		applied(t, newer, true)
		if _, err := newer.Down(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
