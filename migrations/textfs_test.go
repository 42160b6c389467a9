package migrations

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/falldue/falldue/dialect"
)

func TestTextFSIsAFileSystem(t *testing.T) {
	t.Parallel()
	for _, f := range []textFS{{}, {"1.sql": ""}, {"2.sql": "select 2", "1.sql": "select 1", "3.txt": "three"}} {
		var names []string
		for name := range f {
			names = append(names, name)
		}
		if err := fstest.TestFS(f, names...); err != nil {
			t.Error(err)
		}
	}
	if err := fstest.TestFS(textFS{"1.sql": ""}); err == nil {
		t.Error("TestFS accepts an empty file system with a file in it")
	}
	if _, err := (textFS{}).Open("1.sql"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: error %v, want fs.ErrNotExist", err)
	}
}

// TestFSServesEveryTemplate holds what FS returns to the embedded files.
func TestFSServesEveryTemplate(t *testing.T) {
	t.Parallel()
	for _, name := range []dialect.Name{dialect.Postgres, dialect.MySQL, dialect.SQLite} {
		d, err := dialect.DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := FS(d, dialect.Tables{Prefix: "falldue_"})
		if err != nil {
			t.Fatal(err)
		}
		templates, err := fs.Glob(templates, string(name)+"/*.sql")
		if err != nil || len(templates) == 0 {
			t.Fatalf("%s has no migrations (error %v)", name, err)
		}
		for i := range templates {
			templates[i] = templates[i][len(name)+1:]
		}
		if err := fstest.TestFS(files, templates...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
