package falldue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheFirstCauseIsTheOneReported: a handler that timed out and returns after the
// worker was stopped has timed out.
func TestTheFirstCauseIsTheOneReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		fn := chain(handlerFunc(func(ctx context.Context, _ *taskRun) error {
			<-ctx.Done()
			stop(ErrStopping)
			return errors.New("late")
		}), limitTime(time.Second), addCause, recoverPanics)
		err := fn(ctx, &taskRun{})
		if !errors.Is(err, ErrTimeout) || errors.Is(err, ErrStopping) || !strings.HasSuffix(err.Error(), "timed out: late") {
			t.Errorf("error %v, want that of the timeout", err)
		}
	})
}
