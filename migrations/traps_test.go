package migrations_test

import (
	"testing"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
)

// TestMigratorCallsPostgresAlone: the statement that runs when a migrator has waited for
// a lock in vain calls nothing that somebody else has defined. A test of falldue runs
// the others, and is called TestOthersDefineOperatorsAndFunctions.
func TestMigratorCallsPostgresAlone(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	testdb.SetTraps(t, db, migrations.AdvisoryHolder)
	if found := testdb.Trapped(t, db, migrations.AdvisoryHolder); len(found) > 0 {
		t.Errorf("it calls %v", found)
	}
}
