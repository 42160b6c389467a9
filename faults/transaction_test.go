package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// A history must not record a commit that lib/pq has cancelled.
func TestCommitAfterItsContextIsUnsure(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	tx, err := begin(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.close()
	ctx, cancel := context.WithCancel(t.Context())
	tx.ctx = ctx
	cancel()
	if err := tx.Commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit() = %v after its context was cancelled, want an error", err)
	}
	if !tx.ended {
		t.Error("the transaction has not ended")
	}
}
