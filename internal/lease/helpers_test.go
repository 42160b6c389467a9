package lease

import (
	"context"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// noObserver is told of extensions, and does nothing.
type noObserver struct{}

func (noObserver) Extended(int, store.Unsettled, time.Time, error) {}

// fakeTable is a table with functions for extensions, and a class for errors.
type fakeTable struct {
	extend, extendLive func(ctx context.Context, claims []store.Key) (store.Unsettled, error)
	class              dialect.Class
}

func (f *fakeTable) Extend(ctx context.Context, _ string, _ time.Duration, claims []store.Key) (store.Unsettled, error) {
	return f.extend(ctx, claims)
}

func (f *fakeTable) ExtendLive(ctx context.Context, _ string, _ time.Duration, claims []store.Key) (store.Unsettled, error) {
	return f.extendLive(ctx, claims)
}

func (*fakeTable) FreePermits(context.Context, []*store.Claim) error { return nil }
func (f *fakeTable) Classify(error) dialect.Class                    { return f.class }
