package statements_test

import (
	"database/sql"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// enqueueOpen stores n tasks that are due and returns the arguments that
// [statements.ClaimLane] takes for their lane.
func enqueueOpen(t *testing.T, db *sqlx.DB, s dialect.Server, n int) statements.Values {
	t.Helper()
	rows := make([]statements.Row, n)
	for i := range rows {
		rows[i] = statements.Row{"default", "kind", "", int64(0), int64(0), int64(0), nil, "{}"}
	}
	stmt := statements.Enqueue(s, statements.EnqueueParams{Tables: tables}, n)
	if _, err := db.ExecContext(t.Context(), stmt.SQL, stmt.Bind(statements.Values{"channel": ""}, rows)...); err != nil {
		t.Fatal(err)
	}
	return statements.Values{"queue": "default", "state": "open", "priority": 0, "kind": "kind", "policy": "", "attempts": 0,
		"since": int64(0), "limit": 1, "lease": int64(60e6)}
}

// reader is a transaction as the workers' own are.
func reader(t *testing.T, db *sqlx.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// firstDue reads what a claim of one row would take: its id, and its fence
// before the claim; 0 and 0 where it finds none.
func firstDue(t *testing.T, tx *sql.Tx, s dialect.Server, lane statements.Values) (id, fence int64) {
	t.Helper()
	stmt := statements.ClaimLane(s, tables, nil)
	rows, err := tx.QueryContext(t.Context(), stmt.SQL, stmt.Bind(lane, nil)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stmt.SQL)
	}
	defer rows.Close()
	var rest [8]any
	for rows.Next() {
		if err := rows.Scan(&rest[0], &id, &fence, &rest[1], &rest[2], &rest[3], &rest[4], &rest[5], &rest[6], &rest[7]); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return id, fence
}

// TestLocksKeepClaimsApart: what a claim reads with locks, a second one does
// not see. TiDB parses SKIP LOCKED and locks nothing, which is why a claim must
// not ask it for that.
func TestLocksKeepClaimsApart(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Caps.LockRows || s.Caps.UpdateReturning {
			t.Skip("it claims by one statement, or locks no rows")
		}
		lane := enqueueOpen(t, db, s, 2)
		skips := s
		skips.Caps.SkipLocked = true
		one, _ := firstDue(t, reader(t, db), skips, lane)
		two, _ := firstDue(t, reader(t, db), skips, lane)
		if one == 0 {
			t.Fatal("the first claim finds nothing")
		}
		if skipped := two != 0 && two != one; skipped != s.Caps.SkipLocked {
			t.Errorf("SKIP LOCKED skips what others have locked: %v; the server's Caps say %v", skipped, s.Caps.SkipLocked)
		}
	})
}

// TestClaimsAreExclusiveWithoutLocks: of two claims that read the same row, only
// one gets it.
func TestClaimsAreExclusiveWithoutLocks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Caps.LockRows || s.Caps.UpdateReturning {
			t.Skip("it claims by one statement, or locks no rows")
		}
		lane := enqueueOpen(t, db, s, 2)
		unlocked := s
		unlocked.Caps.LockRows = false
		take := statements.Take(s, tables, 1)
		var ids, fences [2]int64
		var txs [2]*sql.Tx
		for i := range txs {
			txs[i] = reader(t, db)
			ids[i], fences[i] = firstDue(t, txs[i], unlocked, lane)
		}
		if ids[0] == 0 || ids[0] != ids[1] || fences[0] != fences[1] {
			t.Fatalf("the claims read tasks %v with fences %v, want the same one", ids, fences)
		}
		for i, want := range []int64{1, 0} {
			lane["worker"] = []string{"one", "other"}[i]
			res, err := txs[i].ExecContext(t.Context(), take.SQL, take.Bind(lane, []statements.Row{{ids[i], fences[i]}})...)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := res.RowsAffected(); err != nil || n != want {
				t.Errorf("claim %d takes %d rows (error %v), want %d", i, n, err, want)
			}
			if err := txs[i].Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
