package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
)

// TestNoticesDoNotPreventSweeps: however many notices come, a task in a lane that the
// poller cannot know of is found.
func TestNoticesDoNotPreventSweeps(t *testing.T) {
	t.Parallel()
	s, ran := migrated(t, testdb.Postgres), make(chan struct{})
	handlers := map[string]*run.Handler{"k": {Kind: "k", Queue: "default", Policy: control.Compile(backoff.Zizq()), Run: func(context.Context, *run.Run) *outcome.Failure {
		close(ran)
		return nil
	}}}
	if _, err := s.Enqueue(t.Context(), nil, []store.Entry{{Queue: "default", Kind: "k", Priority: 7, Payload: "1"}}); err != nil {
		t.Fatal(err)
	}
	w := idleOn(t.Context(), s, Config{Handlers: handlers})
	p, d := w.pollers.Of("default"), w.dispatchers["default"]
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { p.Loop(ctx) })
	working.Go(func() { p.Sweeper.Work(ctx) })
	patience := time.After(testdb.Patience)
	for found := false; !found; {
		p.SweepNow()
		select {
		case <-ran:
			found = true
		case <-time.After(time.Millisecond):
		case <-patience:
			t.Fatal("the task was not found")
		}
	}
	stop()
	working.Wait()
	d.Finish()
}
