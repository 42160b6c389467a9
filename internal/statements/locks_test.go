package statements_test

import (
	"database/sql"
	"slices"
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
	store(t, db, s, slices.Repeat([]statements.Entry{{Queue: "default", Kind: "kind", Payload: "{}"}}, n)...)
	values := statements.Values{"queue": "default", "since": int64(0), "limit": 1, "lease": int64(60e6), "running": statements.StateOpen, "most": int64(1 << 30)}
	statements.SetLane(values, statements.Lane{State: statements.StateOpen, Kind: "kind"})
	return values
}

// reader begins a transaction like those of workers.
func reader(t *testing.T, db *sqlx.DB) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// firstDue returns the task that a claim of one row would take: its id, and its fence
// before the claim. Both are 0 if no task is due.
func firstDue(t *testing.T, tx *sqlx.Tx, s dialect.Server, lane statements.Values) (id, fence int64) {
	t.Helper()
	for _, c := range read(t, tx, statements.ClaimedColumns, statements.ClaimLane(s, tables, nil), lane, nil) {
		id, fence = c.ID, c.Fence
	}
	return id, fence
}

// TestLocksKeepClaimsApart: a claim skips rows that another one has read with
// locks, if Caps have LockRows and SkipLocked. TiDB parses SKIP LOCKED and locks nothing,
// so its Caps must not have SkipLocked.
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
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) {
		if statements.ClaimsAtOnce(s) || s.Caps.SingleWriter {
			t.Skip("it claims by one statement, or has one writer at a time")
		}
		lane := enqueueOpen(t, db, s, 2)
		unlocked := s
		unlocked.Caps.LockRows = false
		take := statements.Take(s, tables, 1)
		var ids, fences [2]int64
		var txs [2]*sqlx.Tx
		for i := range txs {
			txs[i] = reader(t, db)
			ids[i], fences[i] = firstDue(t, txs[i], unlocked, lane)
		}
		if ids[0] == 0 || ids[0] != ids[1] || fences[0] != fences[1] {
			t.Fatalf("the claims read tasks %v with fences %v, want the same one", ids, fences)
		}
		for i, want := range []int64{1, 0} {
			lane["worker"] = []string{"one", "other"}[i]
			res, err := txs[i].ExecContext(t.Context(), take.SQL, take.Bind(lane, []statements.Row{statements.FenceColumns.Row(&statements.Key{TaskID: ids[i], Fence: fences[i]})})...)
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

// TestClaimsOfOneStatementAreExclusive: a claim gets no task of another claim that
// has not committed, whether the engine locks rows or not.
func TestClaimsOfOneStatementAreExclusive(t *testing.T) {
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) {
		if !statements.ClaimsAtOnce(s) {
			t.Skip("it claims lane by lane")
		}
		lane := enqueueOpen(t, db, s, 4)
		lane["worker"], lane["limit"] = "me", 2
		stmt := statements.Claim(s, statements.ClaimParams{Tables: tables})
		wanted := []statements.Row{statements.LaneColumns.Row(&statements.WantedLane{Lane: statements.Lane{State: statements.StateOpen, Kind: "kind"}, Formula: -1, Running: statements.StateOpen, Most: 1 << 30, Room: 2})}
		ids := func(q sqlx.QueryerContext) (ids []int64, err error) {
			rows, err := q.QueryxContext(t.Context(), stmt.SQL, stmt.Bind(lane, wanted)...)
			if err != nil {
				return nil, err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				claim := map[string]any{}
				if err := rows.MapScan(claim); err != nil {
					return nil, err
				}
				ids = append(ids, claim["id"].(int64))
			}
			return ids, rows.Err()
		}
		tx, err := db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		first, err := ids(tx)
		if err != nil || len(first) != 2 {
			t.Fatalf("the first claim got %v (error %v), want two tasks", first, err)
		}
		var second []int64
		done := make(chan error, 1)
		go func() {
			var err error
			second, err = ids(db)
			done <- err
		}()
		// The second claim ends by itself, or waits for the first one's rows.
		for waiting := 0; waiting == 0 && len(done) == 0; {
			err := db.GetContext(t.Context(), &waiting, "select count(*) from pg_locks join pg_database on pg_database.oid = database where datname = current_database() and not granted")
			if err != nil {
				t.Fatal(err)
			}
			if waiting == 0 {
				err = db.GetContext(t.Context(), &waiting, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(second, func(id int64) bool { return slices.Contains(first, id) }) {
			t.Errorf("both claims got one of %v and %v", first, second)
		}
		if s.Caps.SkipLocked && len(second) != 2 {
			t.Errorf("the second claim got %v, want the two that were left", second)
		}
	})
}
