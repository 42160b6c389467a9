package falldue_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/othersql"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/queuetest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestConformance runs the suite on every engine through every driver.
func TestConformance(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				t.Parallel()
				queuetest.TestQueue(t, queuetest.Harness{
					DSN:  func(t *testing.T) string { return testdb.DSN(t, engine) },
					Open: func(dsn string) (*sqlx.DB, error) { return testdb.OpenFew(driver, dsn) },
				})
			})
		}
	})
}

// listed returns the tasks of a page.
func listed(p ops.Page, err error) ([]falldue.TaskInfo, error) { return p.Tasks, err }

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
