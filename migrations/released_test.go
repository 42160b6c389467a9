package migrations_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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

// testdata/released keeps each schema that was released, in a folder by the
// number of its last migration: for each folder of migrations the tables as
// that release made them, and rows in every state as that release wrote them.
//
// A release with new migrations runs "go test ./migrations -release", which
// writes the tables, and adds the rows by hand.
const released = "testdata/released"

var release = flag.Bool("release", false, "keep the newest schema in "+released)

// familyOf is the folder of migrations of an engine.
func familyOf(engine dialect.Name) dialect.Name {
	if engine == dialect.MariaDB || engine == dialect.TiDB || engine == testdb.Galera {
		return dialect.MySQL
	}
	return engine
}

// tablesOf is the SQL that makes the tables of the first n migrations, the
// version table included, and the name of the last one.
func tablesOf(t *testing.T, engine dialect.Name, n int) (text, last string) {
	t.Helper()
	d, err := dialect.DefaultServer(engine)
	if err != nil {
		t.Fatal(err)
	}
	files, err := migrations.Dump(d, usual, migrations.Atlas)
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		n = len(files)
	}
	if n > len(files) {
		t.Fatalf("%s has %d migrations; %d were released", engine, len(files), n)
	}
	var b strings.Builder
	versions := "(0)"
	for i, f := range files[:n] {
		fmt.Fprintf(&b, "-- %s\n\n%s\n", f.Name, f.Text)
		versions += fmt.Sprintf(", (%d)", i+1)
	}
	fmt.Fprintf(&b, "-- versions\n\ncreate table %[1]s (version bigint not null primary key, applied_at timestamp not null default current_timestamp);\ninsert into %[1]s (version) values %[2]s;\n",
		usual.Name(d, "migrations"), versions)
	last, _, _ = strings.Cut(files[n-1].Name, "_")
	return b.String(), last
}

// releases lists the folders of released schemas.
func releases(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(released, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no released schema is kept in %s (error %v)", released, err)
	}
	return folders
}

// TestReleasedMigrationsNeverChange: whoever ran a migration would not have what
// it says after a change.
func TestReleasedMigrationsNeverChange(t *testing.T) {
	for _, engine := range []dialect.Name{dialect.Postgres, dialect.MySQL, dialect.SQLite} {
		if *release {
			text, last := tablesOf(t, engine, 0)
			file := filepath.Join(released, last, string(engine)+".sql")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				continue // it was released already
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for i, folder := range releases(t) {
			kept, err := os.ReadFile(filepath.Join(folder, string(engine)+".sql"))
			if err != nil {
				t.Error(err)
				continue
			}
			if text, last := tablesOf(t, engine, i+1); text != string(kept) || last != filepath.Base(folder) {
				t.Errorf("%s: the migrations up to %s are not what %s keeps; a change needs a migration of its own:\n%s", engine, last, folder, text)
			}
		}
	}
}

// runFile runs the statements of a file one by one and returns them.
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

// next is a migration as a later release may have it: a column, and an index that
// every row goes into.
func next(t *testing.T, m *migrations.Migrator, engine string) {
	t.Helper()
	text := "-- +goose Up\nalter table falldue_tasks add column later integer not null default 7;\ncreate index falldue_later on falldue_tasks (later, id);\n" +
		"-- +goose Down\ndrop index falldue_later;\nalter table falldue_tasks drop column later;\n"
	if familyOf(dialect.Name(engine)) == dialect.MySQL {
		text = "-- +goose Up\nalter table falldue_tasks add column later integer not null default 7, add index falldue_later (later, id);\n" +
			"-- +goose Down\nalter table falldue_tasks drop column later;\n"
	}
	if engine == testdb.TiDB { // whose ALTER TABLE knows no column that it adds itself
		text = "-- +goose Up\nalter table falldue_tasks add column if not exists later integer not null default 7;\n" +
			"create index if not exists falldue_later on falldue_tasks (later, id);\n" +
			"-- +goose Down\ndrop index falldue_later on falldue_tasks;\nalter table falldue_tasks drop column later;\n"
	}
	if err := m.Add("99999_later.sql", text); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeUnderLoad brings every released schema to the newest, and to one
// after it, by two processes at once, while sessions of that release enqueue and
// finish tasks in its own SQL; then workers of this release finish the rest.
// Nothing may be lost, and what was finished before must stay as it was.
func TestUpgradeUnderLoad(t *testing.T) {
	for _, folder := range releases(t) {
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

	// The load: sessions of the release enqueue with the first statement of its
	// rows, and finish some of that.
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

	// Two processes migrate at once.
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

	// Workers and enqueuers of this release, while the load goes on.
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
		if _, err := kind.Enqueue(t.Context(), q, "new", nil); err != nil {
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
	await(t, "all tasks to be finished", func() bool { return count(own+"state = 'open'") == 0 })
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// A task may have been finished by both, whom the sessions of the load do not
	// know; a row that is gone is gone by them.
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

// list writes down each task, by id, as far as every release has the columns.
func list(t *testing.T, db *sqlx.DB) map[int64]string {
	t.Helper()
	rows, err := db.Queryx( //nolint:sqlclosecheck // it is closed
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

// await waits until ok.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) || t.Failed() {
			t.Fatalf("gave up waiting for %s", what)
		}
		<-tick.C
	}
}

// TestNewerTablesAreLeftAlone: a release does not touch tables that it does not
// know, and says so.
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
