package systemtest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// TestWorkersThatDieCountNoAttemptBeyondTheLimit: however often a worker dies after it
// claimed a task that has no attempt left, the task's attempts stay at the limit, and the
// next worker makes it dead. A limit of the task's own is one too.
func TestWorkersThatDieCountNoAttemptBeyondTheLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		policy := backoff.Constant(0).WithMaxAttempts(2)
		kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: policy})
		byPolicy, err := kind.Enqueue(t.Context(), q, 1)
		if err != nil {
			t.Fatal(err)
		}
		own, err := kind.Enqueue(t.Context(), q, 1, falldue.EnqueueOptions{MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[int64]int{byPolicy.ID: 2, own.ID: 1}
		for try := range 6 {
			var sources []store.Source
			for attempts := range 3 {
				sources = append(sources, store.Source{
					Lane:  store.Lane{State: statements.StateOpen, Kind: "k", Attempts: attempts},
					Delay: control.Compile(policy).Delay, Running: statements.StateOpen, MaxAttempts: policy.MaxAttempts(),
				})
			}
			for len(ids) > 0 {
				claims, err := hooks.StoreOf(q).Claim(t.Context(), store.ClaimParams{
					Queue: falldue.DefaultQueue, Worker: "dying", Lease: time.Microsecond, Limit: 10, Sources: sources,
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(claims) > 0 {
					break
				}
			}
			for id, most := range ids {
				if info, err := q.Task(t.Context(), id); err != nil || info.Attempts > most {
					t.Fatalf("after %d workers have died, %d attempts count (error %v), %d are allowed", try+1, info.Attempts, err, most)
				}
			}
		}
		falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { t.Error("the task ran"); return nil })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()
		deadline := time.Now().Add(testdb.Patience)
		for id, most := range ids {
			info, err := q.Task(t.Context(), id)
			for ; err == nil && info.State != falldue.StateDead && time.Now().Before(deadline); info, err = q.Task(t.Context(), id) {
				<-time.After(5 * time.Millisecond)
			}
			if err != nil || info.State != falldue.StateDead || info.Attempts != most || !strings.Contains(info.LastError, "vanished") {
				t.Errorf("the task is %s after %d attempts (%q, error %v), want %s after %d", info.State, info.Attempts, info.LastError, err, falldue.StateDead, most)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
