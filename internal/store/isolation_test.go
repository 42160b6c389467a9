package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// openAtLevel returns a pool whose sessions have a default isolation level.
func openAtLevel(t *testing.T, engine, level string) *sqlx.DB {
	t.Helper()
	setting, ok := map[string]string{
		testdb.Postgres: "&default_transaction_isolation=" + strings.ReplaceAll(level, "-", "%20"),
		testdb.MySQL:    "?transaction_isolation=%27" + level + "%27",
		testdb.MariaDB:  "?tx_isolation=%27" + level + "%27",
	}[engine]
	if !ok {
		t.Skip("it has no such sessions")
	}
	db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], testdb.DSN(t, engine)+setting)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestWhatIsNotCommittedDecidesNothing: uncommitted rows decide nothing, even in sessions that may read them.
func TestWhatIsNotCommittedDecidesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := openAtLevel(t, engine, "READ-UNCOMMITTED")
		s := migrated(t, db)
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		enqueue := func(key int) Receipt {
			t.Helper()
			receipts, err := s.EnqueueUnique(ctx, nil, []Entry{{Queue: "default", Kind: "k", Payload: "{}", Unique: hashOf(key)}}, []Unique{{}})
			if err != nil {
				t.Fatal(err)
			}
			return receipts[0]
		}
		waits, ended := enqueue(1).ID, enqueue(2).ID
		act(t, s, ActCancel, []int64{ended})

		// Another transaction turns the two around, and is undone.
		tx := begin(t, db)
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("update falldue_tasks set state = case when id = %d then 'done' else 'open' end", waits)); err != nil {
			t.Fatal(err)
		}
		list, err := s.list(ctx, statements.ListParams{}, statements.Values{"after": int64(0), "limit": 10})
		if err != nil || len(list) != 2 || list[0].State != statements.StateOpen || list[1].State != statements.StateCancelled {
			t.Errorf("listed %+v, error %v", list, err)
		}
		if r := enqueue(2); r.Existed {
			t.Errorf("got %+v, though task %d has ended", r, ended)
		}
		if _, _, err := s.DropKeys(ctx, "", 0); err != nil {
			t.Fatal(err)
		}
		if r := enqueue(1); r != (Receipt{waits, true}) {
			t.Errorf("got %+v, want task %d, which waits", r, waits)
		}
	})
}

// TestTransactionsReadCommitted asks the server for the isolation level of a transaction, in a session whose default is
// another one.
func TestTransactionsReadCommitted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine != testdb.MySQL && engine != testdb.MariaDB {
			t.Skip("no table lists its transactions")
		}
		s := migrated(t, openAtLevel(t, engine, "SERIALIZABLE"))
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		_, err := inTx(ctx, s, func(x runner) (int64, error) {
			if _, err := int64s(ctx, x, statements.Stmt{SQL: "select id from falldue_tasks for update"}, nil, nil); err != nil {
				return 0, err
			}
			for { // the server renews the list ten times a second: at first it may have this session's previous transaction
				levels, err := int64s(ctx, x, statements.Stmt{SQL: "select trx_isolation_level = 'READ COMMITTED' from information_schema.innodb_trx where trx_mysql_thread_id = connection_id()"}, nil, nil)
				if ctx.Err() != nil {
					t.Error("the transaction does not read committed rows only")
				}
				if err != nil || slices.Equal(levels, []int64{1}) {
					return 0, err
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
