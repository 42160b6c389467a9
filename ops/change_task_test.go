package ops_test

import (
	"context"
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestATaskThatCannotBeReadIsNotMissing: an outage is not the error of a task that does not exist.
func TestATaskThatCannotBeReadIsNotMissing(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ops.New(q).ChangeTask(t.Context(), 1, ops.TaskChange{Queue: "other"}); !errors.Is(err, falldue.ErrNotFound) {
		t.Errorf("a task that does not exist: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := ops.New(q).ChangeTask(ended, 1, ops.TaskChange{Queue: "other"}); errors.Is(err, falldue.ErrNotFound) || !errors.Is(err, context.Canceled) {
		t.Errorf("a task that cannot be read: %v", err)
	}
}
