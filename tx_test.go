package falldue_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// execOnly is a transaction that cannot query.
type execOnly struct{}

func (execOnly) ExecContext(context.Context, string, ...any) (sql.Result, error) { return nil, nil }

// TestTransactionsThatCannotQueryAreRefused: the error names the type and what is allowed.
func TestTransactionsThatCannotQueryAreRefused(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	for want, tx := range map[string]falldue.Tx{
		"the transaction is nil":                                   nil,
		"a transaction of type falldue_test.execOnly; allowed are": execOnly{},
		"*sql.DB is a pool":                                        db.DB,
		"*sqlx.DB is a pool":                                       db,
	} {
		_, one := kind.EnqueueTx(t.Context(), q, tx, 1)
		_, many := q.EnqueueManyTx(t.Context(), tx, kind.Params(1))
		_, list := listed(ops.New(q).TasksTx(t.Context(), tx, ops.Filter{}, ops.ListOptions{}))
		for _, err := range []error{one, many, list} {
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		}
	}
}
