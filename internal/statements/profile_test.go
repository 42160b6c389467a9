package statements_test

import (
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestProfileReadsTheIndexAlone: on MySQL, MariaDB and TiDB a profile reads the index of
// tasks, and no row of the table with its payload. PostgreSQL reads the table, and SQLite
// reads either of them. MySQL and MariaDB sort to group, see [dialect.Caps.BigResult].
func TestProfileReadsTheIndexAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, statistics := range []string{fresh, none, stale} {
			db := testdb.Open(t, engine)
			s := migrated(t, db)
			if !s.Caps.LooseScan {
				return
			}
			fill(t, db, s, statistics)
			want := map[string]string{testdb.MySQL: "using index", testdb.MariaDB: "using index", testdb.TiDB: "index:falldue_lane"}[engine]
			if p := plan(t, db, s, statements.Profile(s, tables), nil, nil); !strings.Contains(p, want) || s.Name() == dialect.TiDB && strings.Contains(p, "lookup") {
				t.Errorf("with %s, the plan of the profile has no %q:\n%s", statistics, want, p)
			} else if s.Caps.BigResult && strings.Contains(p, "temporary") {
				t.Errorf("with %s, the profile looks up each group:\n%s", statistics, p)
			}
		}
	})
}
