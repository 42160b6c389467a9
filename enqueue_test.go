package falldue_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
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
		"the transaction is nil":                               nil,
		"a transaction of type falldue_test.execOnly: must be": execOnly{},
		"*sql.DB is a pool":                                    db.DB,
		"*sqlx.DB is a pool":                                   db,
	} {
		_, one := kind.EnqueueTx(t.Context(), q, tx, 1)
		_, many := q.EnqueueManyTx(t.Context(), tx, kind.Params(1))
		_, list := listed(ops.New(q).TasksTx(t.Context(), tx, ops.Filter{}))
		for _, err := range []error{one, many, list} {
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		}
	}
}

// TestReservedNamesOfMetadataAreRefused: in each way to enqueue, and nothing is stored. Names
// that only look like reserved ones are kept, also in a flow.
func TestReservedNamesOfMetadataAreRefused(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err == nil {
		err = q.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	k := falldue.NewKind[int]("k", falldue.KindConfig{})
	for _, name := range []string{"falldue.member", "falldue.waiter", "falldue.later"} {
		with := falldue.EnqueueOptions{Metadata: map[string]string{"a": "b", name: "text"}}
		_, one := k.Enqueue(t.Context(), q, 1, with)
		_, many := k.EnqueueMany(t.Context(), q, []int{1, 2}, with)
		_, inFlow := flow.Chain(k.Params(1, with), k.Params(2, with)).Enqueue(t.Context(), q)
		_, scheduled := periodic.New(q, periodic.Schedule{Name: "s", Spec: "@daily", Task: k.Params(1, with)})
		for what, err := range map[string]error{"Enqueue": one, "EnqueueMany": many, "a flow": inFlow, "a schedule": scheduled} {
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), `metadata "`+name+`": the name must not begin with "falldue."`) {
				t.Errorf("%s with metadata %s: error %v", what, name, err)
			}
		}
	}

	want := map[string]string{"falldue": "1", "Falldue.member": "2", "x.falldue.member": "3"}
	ids, err := flow.Chain(k.Params(1, falldue.EnqueueOptions{Metadata: want}), k.Params(2, falldue.EnqueueOptions{Metadata: want})).Enqueue(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}))
	if err != nil || len(list) != len(ids) {
		t.Errorf("%d tasks are stored, want %d (error %v)", len(list), len(ids), err)
	}
	for _, task := range list {
		if !maps.Equal(task.Metadata, want) {
			t.Errorf("task %d has the metadata %v, want %v", task.ID, task.Metadata, want)
		}
	}
}
