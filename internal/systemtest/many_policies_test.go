package systemtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/testdb"
)

// TestManyPoliciesDelayNoOtherTask: thousands of tasks with policies of their own wait,
// and plain tasks of another process start.
func TestManyPoliciesDelayNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		own, batch := 12_000, 1000
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		server := hooks.StoreOf(q).Server()
		clock := server.Clock()
		if server.Caps.SingleWriter {
			own = 3000 // SQLite runs in this process, with the race detector
		}
		for from := 0; from < own; from += batch {
			var policies, tasks []string
			for i := from; i < from+batch; i++ {
				text := fmt.Sprintf("delay %dh", i+1)
				policies = append(policies, fmt.Sprintf("('%s', '%s', %s)", storable.PolicyKey(text), text, clock.Now))
				tasks = append(tasks, fmt.Sprintf("('default', 'k', '%s', 1, %s, %[2]s, '7')", storable.PolicyKey(text), clock.Now))
			}
			db.MustExec("insert into falldue_policies (" + server.Quote("key") + ", policy, created_at) values " + strings.Join(policies, ","))
			db.MustExec("insert into falldue_tasks (queue, kind, policy, attempts, updated_at, created_at, payload) values " + strings.Join(tasks, ","))
		}
		other, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		kind, ran := falldue.NewKind[int]("k", falldue.KindConfig{}), make(chan int)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		for i := range 3 {
			if _, err := kind.Enqueue(t.Context(), other, i); err != nil {
				t.Fatal(err)
			}
			if got := <-ran; got != i {
				t.Errorf("task %d ran, want %d", got, i)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
