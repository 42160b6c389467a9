package falldue_test

import (
	"cmp"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
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

// byID orders receipts by their tasks' ids: those of a call may be in another order on TiDB.
func byID(a, b falldue.Receipt) int { return cmp.Compare(a.ID, b.ID) }
