package run

import "context"

// Gathering is for handlers that wait until they can run several tasks together (package many). The contexts of all
// handlers have one.
type Gathering struct {
	Stop <-chan struct{} // closed when the worker stops: no more tasks will come
	None bool            // the worker runs one task at a time
}

type gatheringKey struct{}

// WithGathering returns a context that has g.
func WithGathering(ctx context.Context, g Gathering) context.Context {
	return context.WithValue(ctx, gatheringKey{}, g)
}

// GatheringOf returns the Gathering of a handler's context, or the zero value for a context that no worker has made.
func GatheringOf(ctx context.Context) Gathering {
	g, _ := ctx.Value(gatheringKey{}).(Gathering)
	return g
}
