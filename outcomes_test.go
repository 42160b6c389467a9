package falldue

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

func TestGoexitFailsTheAttempt(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	q, err := New(db, Config{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const exits = 3
	k := NewKind[int]("exits", KindConfig{Policy: backoff.Constant(0)})
	receipt, err := k.Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
	defer stop()
	var failures []Attempt
	Handle(q, k, func(ctx context.Context, task Task[int]) (err error) {
		if task.Attempt <= exits {
			runtime.Goexit() // as a test's FailNow does
		}
		defer stop()
		failures, err = q.Attempts(ctx, receipt.ID)
		return err
	})
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(failures) != exits || !strings.Contains(failures[0].Error, "Goexit") {
		t.Errorf("attempts are recorded as %+v, want %d that failed", failures, exits)
	}
}
