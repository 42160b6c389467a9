package falldue_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/othersql"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/queuetest"
)

// TestConformanceWithoutAName runs the suite on an engine whose name no code knows, and
// whose server lacks all capabilities that an engine may lack. The cases about workers run
// without each of those that decide how tasks are claimed and settled. The tests of
// internal/statements take away all other capabilities, one by one.
func TestConformanceWithoutAName(t *testing.T) {
	for lack, only := range map[string]string{"everything": "", "lateral": "worker", "update returning": "worker", "row locks": "worker"} {
		t.Run("without "+lack, func(t *testing.T) {
			t.Parallel()
			queuetest.TestQueue(t, queuetest.Harness{
				Only: only,
				DSN:  func(t *testing.T) string { return testdb.DSN(t, testdb.Postgres) },
				Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew("postgres", dsn) },
				New: func(db *sqlx.DB, cfg falldue.Config) (*falldue.Queue, error) {
					server, err := othersql.Probe(t.Context(), db, lack)
					if err != nil {
						return nil, err
					}
					return falldue.NewOn(db, server, cfg)
				},
			})
		})
	}
}

// TestCodeDoesNotAskForEngineNames: a difference between engines is a method of Dialect
// or a field of Caps.
func TestCodeDoesNotAskForEngineNames(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`\bdialect\.(Postgres|MySQL|MariaDB|SQLite|TiDB)\b`)
	for text, want := range map[string]bool{"if s.Name() == dialect.Postgres {": true, "case dialect.TiDB:": true, "dialect.PostgresLike": false} {
		if name.MatchString(text) != want {
			t.Errorf("%q names an engine: %v, want %v", text, !want, want)
		}
	}
	for _, file := range sourceFiles(t) {
		// The fault suite kills servers, each in its own way.
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "faults/") {
			continue
		}
		text := readFile(t, file)
		if strings.HasPrefix(text, "// Code generated ") {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if name.MatchString(line) {
				t.Errorf("%s:%d names an engine: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
}
