package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

func TestUnknownReleaseIsRefused(t *testing.T) {
	t.Parallel()
	_, err := chooseReleases("postgres-12,postgres-9.6")
	if err == nil || !strings.Contains(err.Error(), `"postgres-9.6"`) || !strings.Contains(err.Error(), "mysql-9.7") {
		t.Errorf("got %v, want the unknown release and the known ones", err)
	}
}

// Documents promise the releases that make matrix runs on, and no others but TiDB's,
// which make tidb runs on, and SQLite's, which is in the tests' own process.
func TestDocumentsNameTheReleasesOfTheMatrix(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, r := range releases {
		want[r.engine] = append(want[r.engine], r.version)
	}
	for _, file := range []string{"README.md", "docs/engines.md"} {
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for engine, title := range map[string]string{testdb.Postgres: "PostgreSQL", testdb.MySQL: "MySQL", testdb.MariaDB: "MariaDB"} {
			row := regexp.MustCompile(`(?m)^\| ` + title + ` \| ([^|]*) \|`).FindStringSubmatch(string(text))
			if row == nil {
				t.Errorf("%s has no row for %s", file, title)
				continue
			}
			if versions := strings.Join(want[engine], ", "); row[1] != versions {
				t.Errorf("%s: %s is tested on %q, and make matrix runs on %q", file, title, row[1], versions)
			}
		}
	}
}
