package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestTasksBeforeTheLastClaimedAreFound: a worker remembers up to where it has claimed
// from a lane. A task of another process that appears before that runs all the same.
func TestTasksBeforeTheLastClaimedAreFound(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		cfg := falldue.Config{PollInterval: 50 * time.Millisecond}
		q, err := falldue.New(db, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		other, err := falldue.New(db, cfg)
		if err != nil {
			t.Fatal(err)
		}
		kind, ran := falldue.NewKind[int]("k", falldue.KindConfig{}), make(chan int, 10)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
		stop := runUntil(t, q)
		defer stop()
		for i := range 6 {
			by, options := q, falldue.EnqueueOptions{}
			if i%2 == 1 { // an earlier anchor than any before
				by, options = other, falldue.EnqueueOptions{RunAt: time.Now().Add(-time.Duration(i) * time.Hour)}
			}
			if _, err := kind.Enqueue(t.Context(), by, i, options); err != nil {
				t.Fatal(err)
			}
			if got := <-ran; got != i {
				t.Errorf("task %d ran, want %d", got, i)
			}
		}
	})
}
