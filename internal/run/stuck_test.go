package run

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/store"
)

// TestStuckHandlersLoseTheirRun: the run that continues has the lease, and the handler's run has lost it.
func TestStuckHandlersLoseTheirRun(t *testing.T) {
	t.Parallel()
	stopped, release, returned := false, make(chan struct{}), make(chan bool, 1)
	s := NewStuck(StuckConfig{After: time.Millisecond, Failure: func(_ *Run, err error) *outcome.Failure { return &outcome.Failure{Err: err} }}, func() { stopped = true }, slog.New(slog.DiscardHandler))
	r := &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{}}, Env: &Env{}, Lease: lease.New(&store.Claim{}, "", time.Now().Add(time.Hour))}
	r.handler = &Handler{Run: func(context.Context, *Run) *outcome.Failure {
		<-release
		returned <- r.Lease.Settling()
		return nil
	}}
	leases := lease.NewSet()
	leases.Add(&r.Lease)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(outcome.ErrStopping)
	left, f := s.handle(ctx, r, leases)
	var stuck *outcome.StuckError
	if f == nil || !errors.As(f.Err, &stuck) || !errors.Is(f.Err, outcome.ErrStopping) || !strings.Contains(stuck.Stack, "TestStuckHandlersLoseTheirRun") {
		t.Fatalf("the handler failed with %+v", f)
	}
	if lost, _ := left.Lease.State(); lost || left == r || !leases.Has(&left.Lease) || leases.Has(&r.Lease) {
		t.Errorf("the run that goes on lost its lease: %t", lost)
	}
	if !stopped || !errors.Is(s.Err(), outcome.ErrStuck) {
		t.Errorf("the worker stopped: %t, with the error %v", stopped, s.Err())
	}
	if close(release); <-returned {
		t.Error("the stuck handler may still settle the task")
	}
}
