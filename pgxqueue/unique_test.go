package pgxqueue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/pgxqueue"
)

// TestUniqueTasksInTransactionsOfPgx covers each thing that may become of a task.
func TestUniqueTasksInTransactionsOfPgx(t *testing.T) {
	t.Parallel()
	pool, q := open(t, testdb.DSN(t, testdb.Postgres), 4, falldue.Config{})
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	within := func(u falldue.Unique, args ...int) (receipts []falldue.Receipt, err error) {
		t.Helper()
		tx, begun := pool.Begin(t.Context())
		if begun != nil {
			t.Fatal(begun)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		params := make([]falldue.EnqueueParams, len(args))
		for i, n := range args {
			params[i] = kind.Params(n, falldue.EnqueueOptions{Delay: time.Hour, Unique: u})
		}
		if receipts, err = q.EnqueueManyTx(t.Context(), pgxqueue.Tx(tx), params...); err != nil && !errors.Is(err, falldue.ErrExists) {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		return receipts, err
	}
	first, err := within(falldue.Unique{By: falldue.ByArgs()}, 1, 2, 1)
	if err != nil || first[0].Existed || first[1].Existed || first[2] != (falldue.Receipt{ID: first[0].ID, Existed: true}) {
		t.Fatalf("new tasks: %+v, %v", first, err)
	}
	for _, u := range []falldue.Unique{{By: falldue.ByArgs()}, {By: falldue.ByArgs(), WhileWaiting: true}, {By: falldue.ByArgs(), OnConflict: falldue.ConflictReplace}} {
		if r, err := within(u, 1); err != nil || r[0] != first[2] {
			t.Errorf("%+v: %+v, %v, want %+v", u, r, err, first[2])
		}
	}
	if _, err := within(falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictFail}, 3, 2); !errors.Is(err, falldue.ErrExists) {
		t.Errorf("ConflictFail: %v", err)
	}
	page, err := ops.New(q).Tasks(t.Context(), ops.Filter{})
	if err != nil || len(page.Tasks) != 2 {
		t.Errorf("%d tasks are stored (error %v), want 2", len(page.Tasks), err)
	}
}
