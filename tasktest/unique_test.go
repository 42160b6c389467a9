package tasktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// TestUniqueForTheTimeOfTheClock: the time for which a task is unique passes when the clock
// is moved, and RequireEnqueued finds exactly one task of those that are equal.
func TestUniqueForTheTimeOfTheClock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		q := newQueue(t, db, falldue.Config{})
		k := falldue.NewKind[string]("digest", falldue.KindConfig{})
		falldue.Handle(q, k, func(context.Context, falldue.Task[string]) error { return nil })
		daily := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), For: 24 * time.Hour}}
		first := enqueue(t, q, k, "ada", daily)
		if again := enqueue(t, q, k, "ada", daily); again != first {
			t.Errorf("task %d was stored beside task %d", again, first)
		}
		tasktest.RequireEnqueued(t, q, k, "ada")
		for _, c := range []struct {
			after time.Duration
			same  bool
		}{{23 * time.Hour, true}, {time.Hour + time.Second, false}} {
			clock.Advance(t, q, c.after)
			if id := enqueue(t, q, k, "ada", daily); (id == first) != c.same {
				t.Errorf("%v later the task is %d, the first was %d", c.after, id, first)
			}
		}
	})
}
