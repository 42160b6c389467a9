package statements_test

import (
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestStatementsCallPostgresAlone: a user who may create objects in a schema of the
// search path defines operators and functions there. If the types of arguments fit
// these better than PostgreSQL's own, PostgreSQL would call them, with the permissions of
// the worker.
func TestStatementsCallPostgresAlone(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	s := migrated(t, db)
	all := allOf(t, s)
	text := ""
	for _, stmt := range all {
		text += stmt.SQL
	}
	testdb.SetTraps(t, db, text)
	for name, stmt := range all {
		if strings.HasPrefix(stmt.SQL, "copy ") {
			continue // it calls nothing
		}
		if found := testdb.Trapped(t, db, stmt.SQL); len(found) > 0 {
			t.Errorf("%s calls %s:\n%s", name, strings.Join(found, ", "), stmt.SQL)
		}
	}
}
