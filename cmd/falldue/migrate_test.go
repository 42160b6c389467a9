package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/connect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// TestOnlyMigrateUpMakesAFile: other commands would hide a mistyped path behind an empty database.
func TestOnlyMigrateUpMakesAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "typo.db")
	want := "the SQLite file " + file + ` does not exist; "falldue migrate up" creates it, with the tables`
	for _, command := range []string{"ls", "show 1", "doctor", "top", "migrate status", "migrate down --yes", "pause mail", "enqueue mail {}"} {
		if _, err := execute(t, append(strings.Fields(command), "--dsn", "sqlite:"+file)...); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", command, err, want)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s has made the file: %v", command, err)
		}
	}
	if _, err := execute(t, "ls", "--dsn", "sqlite:"); err == nil || !strings.HasPrefix(err.Error(), `DSN "sqlite:": the path is missing: must be sqlite:path`) {
		t.Errorf("without a path: %v", err)
	}
	mustRun(t, "migrate", "up", "--dsn", "sqlite:"+file)
	mustRun(t, "ls", "--dsn", "sqlite:"+file)
}

func TestMigrateUpStatusDown(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
	for _, step := range []struct{ verb, want string }{
		{"up", "the tables are up to date; migrations run: 1\n"},
		{"up", "the tables are up to date already\n"},
		{"status", "applied  00001_falldue_tasks.sql\n"},
		{"down --yes", "the tables are dropped; migrations reverted: 1\n"},
		{"status", "pending  00001_falldue_tasks.sql\n"},
	} {
		args := append([]string{"migrate", "--dsn", file, "--prefix", "shop_"}, strings.Fields(step.verb)...)
		if got := mustRun(t, args...); got != step.want {
			t.Errorf("%s printed %q, want %q", step.verb, got, step.want)
		}
	}
}

func TestMigrateUsesThePrefix(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	mustRun(t, "migrate", "up", "--dsn", "sqlite:"+file, "--prefix", "shop_")
	got := tablesOf(t, file)
	if !slices.Contains(got, "shop_tasks") || slices.ContainsFunc(got, func(name string) bool { return !strings.HasPrefix(name, "shop_") }) {
		t.Errorf("the tables are %v, want shop_tasks and others of that prefix alone", got)
	}
}

// TestMigrateEachEngine creates the tables on each engine and drops them.
func TestMigrateEachEngine(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		for _, step := range []struct{ verb, want string }{
			{"up", "the tables are up to date; migrations run: 1\n"},
			{"status", "applied  00001_falldue_tasks.sql\n"},
			{"down --yes", "the tables are dropped; migrations reverted: 1\n"},
		} {
			args := append([]string{"migrate", "--dsn", dsn}, strings.Fields(step.verb)...)
			if got := mustRun(t, args...); got != step.want {
				t.Errorf("%s printed %q, want %q", step.verb, got, step.want)
			}
		}
	})
}

func TestMigrateTakesTheDSNFromTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.db")
	t.Setenv(dsnVariable, "sqlite:"+file)
	mustRun(t, "migrate", "up")
	if got := tablesOf(t, file); !slices.Contains(got, "falldue_tasks") {
		t.Errorf("the tables are %v, without falldue_tasks", got)
	}
}

func TestMigrateErrorsNameTheMistake(t *testing.T) {
	t.Setenv(dsnVariable, "")
	file := filepath.Join(t.TempDir(), "shop.db")
	mustRun(t, "migrate", "up", "--dsn", "sqlite:"+file)
	before := tablesOf(t, file)
	for want, args := range map[string][]string{
		"no database is given; use --dsn, or set FALLDUE_DSN":                                                             {"up"},
		"down drops the tables of falldue, whose names begin with falldue_, and the tasks in them; confirm with --yes":    {"down", "--dsn", file},
		`unknown driver "oracle"; the drivers are [postgres mysql sqlite]`:                                                {"up", "--dsn", file, "--driver", "oracle"},
		"no driver for a DSN that begins with redis://: must be":                                                          {"up", "--dsn", "redis://localhost/shop"},
		"the DSN is neither a URL nor the path of an existing file (a new SQLite file needs the prefix sqlite:): must be": {"up", "--dsn", "nonsense"},
		`--start "0": must be a number above 0, or "timestamp"`:                                                           {"dump", "--engine", "sqlite", "--start", "0"},
		`table prefix "a-b": must be`:                                                                                     {"up", "--dsn", file, "--prefix", "a-b"},
		`schema "s": must be empty: only PostgreSQL supports it, not sqlite`:                                              {"up", "--dsn", file, "--schema", "s"},
		`--engine "oracle": must be postgres, mysql, mariadb, sqlite or tidb`:                                             {"dump", "--engine", "oracle"},
		`unknown format "flyway"; the formats are [goose golang-migrate atlas]`:                                           {"dump", "--engine", "sqlite", "--format", "flyway"},
		`--engine is missing: must be postgres, mysql, mariadb, sqlite or tidb`:                                           {"dump"},
		`unknown flag --dsn`: {"dump", "--engine", "sqlite", "--dsn", file},
		`table prefix "": must be 1 to 40 letters, digits or underscores, and must not start with a digit`: {"dump", "--engine", "sqlite", "--prefix", ""},
	} {
		if _, err := execute(t, append([]string{"migrate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %s", args, err, want)
		}
	}
	if got := tablesOf(t, file); !slices.Equal(got, before) {
		t.Errorf("after the errors the tables are %v, want %v", got, before)
	}
}

// tableName matches the name of a table, or of the index, in a migration.
var tableName = regexp.MustCompile(`\{([a-z_]+)\}`)

// TestMigrateDumpPrintsTheMigrations compares the output with the files of the
// repository, with the names of the tables filled in.
func TestMigrateDumpPrintsTheMigrations(t *testing.T) {
	t.Parallel()
	for engine, folder := range map[string]string{"postgres": "postgres", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite", "tidb": "mysql"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "migrations", folder, "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no migrations (error %v)", folder, err)
		}
		quote := `"`
		if folder == "mysql" {
			quote = "`"
		}
		want := map[string]string{}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := tableName.ReplaceAllString(string(source), quote+"jobs_$1"+quote)
			_, up, _ := strings.Cut(strings.ReplaceAll(text, "-- +goose NO TRANSACTION\n", ""), "-- +goose Up\n")
			up, down, _ := strings.Cut(up, "-- +goose Down\n")
			up, down = strings.TrimSpace(up)+"\n", strings.TrimSpace(down)+"\n"
			name := strings.TrimSuffix(filepath.Base(file), ".sql")
			want["goose"] += "-- " + name + ".sql\n" + text
			want["golang-migrate"] += "-- " + name + ".up.sql\n" + up + "-- " + name + ".down.sql\n" + down
			want["atlas"] += "-- " + name + ".sql\n" + up
		}
		for format, want := range want {
			if got := mustRun(t, "migrate", "dump", "--engine", engine, "--format", format, "--prefix", "jobs_"); got != want {
				t.Errorf("%s for %s: printed\n%s\nwant\n%s", engine, format, got, want)
			}
		}
	}
	if got := mustRun(t, "migrate", "dump", "--engine", "postgres", "--schema", "jobs"); !strings.Contains(got, `create table "jobs"."falldue_tasks" (`) {
		t.Errorf("the schema is not in\n%s", got)
	}
}

// TestDumpedFilesCreateTheSameTables runs dumped files as another tool would.
func TestDumpedFilesCreateTheSameTables(t *testing.T) {
	t.Parallel()
	migrated := filepath.Join(t.TempDir(), "migrated.db")
	mustRun(t, "migrate", "up", "--dsn", "sqlite:"+migrated)
	want := slices.DeleteFunc(tablesOf(t, migrated), func(name string) bool { return name == "falldue_migrations" })

	folder := filepath.Join(t.TempDir(), "sql")
	out := mustRun(t, "migrate", "dump", "--engine", "sqlite", "--format", string(migrations.GolangMigrate), "--dir", folder)
	up, down := filepath.Join(folder, "00001_falldue_tasks.up.sql"), filepath.Join(folder, "00001_falldue_tasks.down.sql")
	if out != up+"\n"+down+"\n" {
		t.Errorf("it printed %q", out)
	}
	dumped := filepath.Join(t.TempDir(), "dumped.db")
	runFile(t, dumped, up)
	if got := tablesOf(t, dumped); !slices.Equal(got, want) {
		t.Errorf("the dumped files create %v, the migrations %v", got, want)
	}
	runFile(t, dumped, down)
	if got := tablesOf(t, dumped); len(got) != 0 {
		t.Errorf("the dumped files leave %v", got)
	}
}

func TestMigrateDumpOverwritesNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dump := func() error {
		_, err := execute(t, "migrate", "dump", "--engine", string(dialect.Postgres), "--dir", folder)
		return err
	}
	if err := dump(); err != nil {
		t.Fatal(err)
	}
	if err := dump(); err != nil {
		t.Errorf("a second dump of the same files: %v", err)
	}
	file := filepath.Join(folder, "00001_falldue_tasks.sql")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dump(); err == nil || !strings.Contains(err.Error(), file+" exists with other contents") {
		t.Errorf("a dump over another file: %v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "mine" {
		t.Errorf("the other file became %q (error %v)", got, err)
	}
}

// TestMigrateDumpGoesAfterOtherMigrations: the folder of an application has migrations
// with numbers, and tools refuse two with one number.
func TestMigrateDumpGoesAfterOtherMigrations(t *testing.T) {
	t.Parallel()
	for _, format := range migrations.Formats {
		folder := t.TempDir()
		for _, name := range []string{"00001_shop.sql", "002_orders.up.sql", "notes.md"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dump := func(more ...string) (string, error) {
			return execute(t, append([]string{"migrate", "dump", "--engine", "postgres", "--format", string(format), "--dir", folder}, more...)...)
		}
		for _, taken := range []string{"1", "2"} {
			if _, err := dump("--start", taken); err == nil || !strings.Contains(err.Error(), "has the same number as the new file") || !strings.Contains(err.Error(), "--start") {
				t.Errorf("%s: start %s: %v", format, taken, err)
			}
		}
		first, err := dump("--start", "3")
		if err != nil || !strings.HasPrefix(first, filepath.Join(folder, "00003_falldue_tasks.")) {
			t.Errorf("%s: start 3 printed %s (error %v)", format, first, err)
		}
		// Again, under another number.
		if again, err := dump("--start", "timestamp"); err != nil || again != first {
			t.Errorf("%s: the second dump printed %s (error %v), want %s", format, again, err, first)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*falldue*"))
		if err != nil || len(files) != strings.Count(first, "\n") {
			t.Errorf("%s: the folder has %v (error %v)", format, files, err)
		}
	}
	stamped := mustRun(t, "migrate", "dump", "--engine", "postgres", "--start", "timestamp")
	if name := strings.TrimPrefix(stamped, "-- "); !strings.HasPrefix(name, "20") || strings.Index(name, "_falldue_tasks.sql\n") != 14 {
		t.Errorf("with timestamps the file is %.60s", name)
	}
}

// tablesOf lists the tables of a SQLite file.
func tablesOf(t *testing.T, file string) (names []string) {
	t.Helper()
	inFile(t, file, func(db *sqlx.DB) error {
		return db.Select(&names, "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name")
	})
	return names
}

// runFile runs the statements of a file on a SQLite database.
func runFile(t *testing.T, database, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	inFile(t, database, func(db *sqlx.DB) error {
		_, err := db.Exec(string(text))
		return err
	})
}

func inFile(t *testing.T, file string, fn func(*sqlx.DB) error) {
	t.Helper()
	db, err := connect.Open(t.Context(), connect.SQLite, file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := fn(db); err != nil {
		t.Fatal(err)
	}
}
