package store

import (
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestFacts: each catalog knows its facts, and sees a transaction that is open.
func TestFacts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if engine != testdb.SQLite { // it would hold up the others
			tx.MustExec("update falldue_tasks set queue = 'x' where id = 1")
		}
		facts := statements.Facts(s.server)
		if len(facts) == 0 {
			t.Error("the catalog has no facts")
		}
		mayNotKnow := []Fact{statements.FactRows, statements.FactKeptWAL} // without statistics, and without a slot
		for fact := range facts {
			f, known, err := s.Fact(t.Context(), fact)
			if err != nil || !known && !slices.Contains(mayNotKnow, fact) || f.Amount < 0 {
				t.Errorf("%s is %+v, known %v, error %v", fact, f, known, err)
			}
			if fact == statements.FactRows && engine == testdb.Postgres && !known {
				t.Error("how many tasks there are is not known without ANALYZE")
			}
			if fact == statements.FactWALBytes && (f.Amount < 16<<20 || f.Detail == "") {
				t.Errorf("the write-ahead log is %+v", f)
			}
			if fact == statements.FactOldestTransaction && (f.Amount == 0 || f.Detail == "") {
				t.Errorf("the oldest transaction is %+v", f)
			}
		}
		files, bytes, known, err := s.BinaryLogs(t.Context())
		switch {
		case engine != testdb.MySQL && engine != testdb.MariaDB:
			if known || err != nil {
				t.Errorf("%d binary logs, error %v", files, err)
			}
		case known != (err == nil), known && (files < 1 || bytes < 1), err != nil && !strings.Contains(err.Error(), "not using binary logging"):
			t.Errorf("%d binary logs of %d bytes, known %v, error %v", files, bytes, known, err)
		}
	})
}
