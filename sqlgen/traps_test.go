package sqlgen

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// TestFormulasCallPostgresAlone: operators and functions that somebody has defined in a
// schema of the search path are not called, whatever types they take.
func TestFormulasCallPostgresAlone(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	d := dialectOf(t, dialect.Postgres)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := seeded(seed)
	var statements []string
	for range 50 {
		var columns, due []string
		for _, attempts := range []string{"a", "b", "c"} {
			f := randomFormula(c)
			predicate, err := Due(d, f, DueParams{AttemptsColumn: attempts, UpdatedAtColumn: "u" + attempts, UTC: attempts == "b"})
			if err != nil {
				t.Fatal(err)
			}
			columns = append(columns, f.SQL(d, attempts), f.MicrosSQL(d, attempts))
			due = append(due, predicate)
		}
		statements = append(statements, "select "+strings.Join(columns, ", ")+" from rows where "+strings.Join(due, " and "))
	}
	db.MustExec("create table rows (a smallint, b integer, c bigint, ua timestamptz, ub timestamp, uc timestamptz)")
	testdb.SetTraps(t, db, strings.Join(statements, "\n")+" power(exp(ln(log10(sqrt(atan(floor(ceil(abs(")
	for _, s := range statements {
		if found := testdb.Trapped(t, db, s); len(found) > 0 {
			t.Errorf("seed %d: %s are called:\n%s", seed, strings.Join(found, ", "), s)
		}
	}
}
