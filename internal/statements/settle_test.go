package statements_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSettleKeepsWhatIsLong: a statement that is prepared once and run with short
// and long values in any order cuts no value off.
func TestSettleKeepsWhatIsLong(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		const n = 4
		enqueueOpen(t, db, s, n)
		run(t, db, "update falldue_tasks set id = id + 4611686018427387904, fence = 4611686018427387904")
		var ids []int64
		if err := db.SelectContext(t.Context(), &ids, "select id from falldue_tasks order by id"); err != nil {
			t.Fatal(err)
		}
		stmt := statements.Settle(s, tables, n)
		prepared, err := db.PrepareContext(t.Context(), stmt.SQL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = prepared.Close() }()
		for _, lengths := range [][]int{{1, 2, 3, 4}, {1, 8_000, 300, 5_000}, {8_000, 1, 1, 1}, {0, 5, 0, 8_000}} {
			var rows []statements.Row
			var settled []statements.Settlement
			for i, id := range ids {
				e := statements.Settlement{Key: statements.Key{TaskID: id, Fence: 1 << 62}, State: statements.StateOpen, Wait: int64(i)}
				if lengths[i] > 0 {
					e.Error = sql.Null[string]{V: strings.Repeat("ü", lengths[i]), Valid: true}
					e.Result = sql.Null[string]{V: `"` + strings.Repeat("a", 100*lengths[i]) + `"`, Valid: true}
				}
				settled = append(settled, e)
				rows = append(rows, statements.SettleColumns.Row(&e))
			}
			run(t, db, "update falldue_tasks set last_error = 'before'")
			if _, err := prepared.ExecContext(t.Context(), stmt.Bind(statements.Values{"worker": ""}, rows)...); err != nil {
				t.Fatalf("lengths %v: %v", lengths, err)
			}
			for i, id := range ids {
				var got struct {
					LastError string  `db:"last_error"`
					Result    *string `db:"result"`
				}
				if err := db.GetContext(t.Context(), &got, db.Rebind("select last_error, result from falldue_tasks where id = ?"), id); err != nil {
					t.Fatal(err)
				}
				failure, answer := "before", settled[i].Result
				if settled[i].Error.Valid {
					failure = settled[i].Error.V
				}
				if got.LastError != failure {
					t.Errorf("lengths %v: error %d has %d bytes, begins with %.20q", lengths, i, len(got.LastError), got.LastError)
				}
				if (got.Result == nil) == answer.Valid || got.Result != nil && *got.Result != answer.V {
					t.Errorf("lengths %v: result %d is wrong", lengths, i)
				}
			}
		}
	})
}
