package systemtest

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestCancelOfARunningTaskIsLoggedAsSuch: the log says that it was cancelled, and not that
// its lease was lost, which is a failure.
func TestCancelOfARunningTaskIsLoggedAsSuch(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		var log lockedBuilder
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := make(chan int64)
		kind := falldue.NewKind[int]("waits", falldue.KindConfig{})
		falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
			began <- task.ID
			<-ctx.Done()
			return context.Cause(ctx)
		})
		defer runUntil(t, q)()
		if _, err := kind.Enqueue(t.Context(), q, 0); err != nil {
			t.Fatal(err)
		}
		if err := q.Cancel(t.Context(), <-began); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the log", func() bool { return strings.Contains(log.String(), "a task was cancelled or deleted while it ran") })
		if strings.Contains(log.String(), "lease lost") {
			t.Errorf("the log says that a lease was lost: %s", log.String())
		}
	})
}
