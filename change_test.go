package falldue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestRefusedActionsNameTheState: an error tells a task that does not exist from one whose
// state does not allow the action.
func TestRefusedActionsNameTheState(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err == nil {
		err = q.Migrate(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := falldue.NewKind[int]("k", falldue.KindConfig{}).Enqueue(ctx, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	retry := q.Retry(ctx, receipt.ID)
	if err := q.Cancel(ctx, receipt.ID); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"falldue: wrong state: task 1 is open; expected dead or cancelled":                                retry,
		"falldue: wrong state: task 1 is cancelled; expected blocked, open or snoozed":                    q.Cancel(ctx, receipt.ID),
		"falldue: wrong state: task 1 is cancelled; expected dead":                                        q.Retry(ctx, receipt.ID, falldue.RetryOptions{State: falldue.StateDead}),
		"falldue: wrong state: task 1 is cancelled with fence 1; expected dead or cancelled with fence 0": q.Retry(ctx, receipt.ID, falldue.RetryOptions{Fence: new(int64(0))}),
		"falldue: wrong state: task 1 is cancelled with fence 1; expected dead or cancelled with fence 7": q.Retry(ctx, receipt.ID, falldue.RetryOptions{Fence: new(int64(7))}),
		"falldue: wrong state: task 1 is cancelled; expected done":                                        q.Retry(ctx, receipt.ID, falldue.RetryOptions{State: falldue.StateDone, Args: 1}),
		"falldue: no such task: 7": q.Delete(ctx, 7),
		"falldue: no such task: 8": q.Retry(ctx, 8),
		"falldue: no such task: 9": q.Retry(ctx, 9, falldue.RetryOptions{Args: 1}),
		`falldue: invalid: State "open" of RetryOptions: must be one of ["done" "dead" "cancelled"]`: q.Retry(ctx, receipt.ID, falldue.RetryOptions{State: falldue.StateOpen}),
		"falldue: invalid: 2 RetryOptions: pass at most one":                                         q.Retry(ctx, receipt.ID, falldue.RetryOptions{}, falldue.RetryOptions{}),
	} {
		kind := falldue.ErrNotFound
		switch {
		case strings.Contains(want, "wrong state"):
			kind = falldue.ErrWrongState
		case strings.Contains(want, "invalid"):
			kind = falldue.ErrInvalid
		}
		if !errors.Is(err, kind) || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
