// Package flow makes tasks run after others: a callback when a batch is done or one of it has
// died, chains, and graphs.
//
//	_, err := flow.Batch(pages...).Then(publish.Params(book, nil)).Enqueue(ctx, q)
//	_, err := flow.Chain(pack, ship, bill).EnqueueTx(ctx, q, tx)
//
// A task that runs after others is [falldue.Blocked] until these are done.
package flow
