package migrations_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// testdata/released keeps the schema of each release that had new migrations, in a
// folder named by the number of the last one. For each family of engines it has the
// SQL that makes the tables of that release (NAME.sql), and rows in every state as
// that release wrote them (NAME.rows.sql). There is none before the first release.
//
// testdata/rows has those rows for the current schema. Whoever adds a migration
// keeps them in step. "go test ./migrations -release" records the current schema.
const (
	released    = "testdata/released"
	currentRows = "testdata/rows"
)

var release = flag.Bool("release", false, "record the current schema in "+released)

// families are the engines that have migrations of their own.
var families = []dialect.Name{dialect.Postgres, dialect.MySQL, dialect.SQLite}

// familyOf returns the engine whose migrations an engine runs.
func familyOf(engine dialect.Name) dialect.Name {
	if engine == dialect.MariaDB || engine == dialect.TiDB || engine == testdb.Galera {
		return dialect.MySQL
	}
	return engine
}

// migrationsOf returns the migrations of a family, upwards, oldest first.
func migrationsOf(t *testing.T, family dialect.Name) []migrations.File {
	t.Helper()
	d, err := dialect.DefaultServer(family)
	if err != nil {
		t.Fatal(err)
	}
	files, err := migrations.Dump(d, migrations.DumpParams{Tables: usual, Format: migrations.Atlas})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d migrations (error %v)", family, len(files), err)
	}
	return files
}

// number returns the number that a migration's name begins with.
func number(f migrations.File) string {
	n, _, _ := strings.Cut(f.Name, "_")
	return n
}

// tablesOf returns the SQL that makes the tables of some migrations, with the version
// table.
func tablesOf(t *testing.T, family dialect.Name, files []migrations.File) string {
	t.Helper()
	d, err := dialect.Of(family)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	versions := "(0)"
	for _, f := range files {
		fmt.Fprintf(&b, "-- %s\n\n%s\n", f.Name, f.Text)
		versions += ", (" + strings.TrimLeft(number(f), "0") + ")"
	}
	fmt.Fprintf(&b, "-- versions\n\ncreate table %[1]s (version bigint not null primary key, applied_at timestamp not null default current_timestamp);\ninsert into %[1]s (version) values %[2]s;\n",
		usual.Name(d, "migrations"), versions)
	return b.String()
}

// record writes the current schema, with its rows, into a folder in root, and returns
// that folder. It leaves files alone that are there already, and returns an error if
// they have another schema.
func record(t *testing.T, root string) (folder string, err error) {
	t.Helper()
	last := ""
	texts := map[string]string{}
	for _, family := range families {
		files := migrationsOf(t, family)
		last = max(last, number(files[len(files)-1]))
		rows, err := os.ReadFile(filepath.Join(currentRows, string(family)+".sql"))
		if err != nil {
			return "", err
		}
		texts[string(family)+".sql"], texts[string(family)+".rows.sql"] = tablesOf(t, family, files), string(rows)
	}
	folder = filepath.Join(root, last)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, text := range texts {
		path := filepath.Join(folder, name)
		switch kept, err := os.ReadFile(path); {
		case errors.Is(err, fs.ErrNotExist):
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case string(kept) != text && !strings.HasSuffix(name, ".rows.sql"):
			return "", fmt.Errorf("%s has another schema; give new migrations numbers above %s", path, last)
		}
	}
	return folder, nil
}

// schemas returns the folders of the schemas in root, oldest first.
func schemas(t *testing.T, root string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// heading begins a migration in the SQL of a recorded schema.
var heading = regexp.MustCompile(`(?m)^-- \d+_\w+\.sql$`)

// changes returns an error for each recorded schema in root that the migrations of
// today do not make.
func changes(t *testing.T, root string) (found []error) {
	t.Helper()
	for _, folder := range schemas(t, root) {
		for _, family := range families {
			path := filepath.Join(folder, string(family)+".sql")
			kept, err := os.ReadFile(path)
			if err != nil {
				found = append(found, err)
				continue
			}
			files := migrationsOf(t, family)
			n := min(len(files), len(heading.FindAll(kept, -1)))
			if text := tablesOf(t, family, files[:n]); text != string(kept) {
				found = append(found, fmt.Errorf("%s is not what the first %d migrations make; a change needs a migration of its own:\n%s", path, n, text))
			}
		}
	}
	return found
}

// TestReleasedMigrationsNeverChange fails when a released migration was changed:
// databases that have run it would not get the change.
func TestReleasedMigrationsNeverChange(t *testing.T) {
	if *release {
		if _, err := record(t, released); err != nil {
			t.Fatal(err)
		}
	}
	if len(schemas(t, released)) == 0 {
		t.Logf("%s has no schema: nothing has been released", released)
	}
	for _, err := range changes(t, released) {
		t.Error(err)
	}
}

// TestChangedMigrationsAreFound tests what the test above rests on, with the current
// schema in place of a released one.
func TestChangedMigrationsAreFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder, err := record(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if found := changes(t, root); len(found) > 0 {
		t.Fatalf("nothing has changed, but changes returns %v", found)
	}
	if again, err := record(t, root); err != nil || again != folder {
		t.Errorf("recorded again in %s (error %v), want %s", again, err, folder)
	}
	for _, family := range families {
		path := filepath.Join(folder, string(family)+".sql")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, other := range map[string]string{
			"a column is added":     strings.Replace(string(text), "payload ", "other integer,\n    payload ", 1),
			"a migration is gone":   string(text) + "-- 99999_later.sql\n",
			"the versions are lost": strings.Replace(string(text), "(0)", "(1)", 1),
		} {
			if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
			if found := changes(t, root); len(found) != 1 || !strings.Contains(found[0].Error(), path) {
				t.Errorf("%s, %s: found %v", family, what, found)
			}
			if _, err := record(t, root); err == nil {
				t.Errorf("%s, %s: record writes over another schema", family, what)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if found := changes(t, root); len(found) != 1 || !errors.Is(found[0], fs.ErrNotExist) {
			t.Errorf("%s is removed: found %v", path, found)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFamiliesShareNumbers: a schema is recorded under the highest number, so a number
// must not stand for one migration here and another one there.
func TestFamiliesShareNumbers(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, family := range families {
		for _, f := range migrationsOf(t, family) {
			if other, ok := names[number(f)]; ok && other != f.Name {
				t.Errorf("%s has %s, another family has %s; give one of them a number of its own", family, f.Name, other)
			}
			names[number(f)] = f.Name
		}
	}
}
