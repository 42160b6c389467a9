// Package flow makes tasks run after others: chains, graphs, and batches with a callback that
// runs when the batch is done or when one of its tasks is dead.
//
//	_, err := flow.Batch(pages...).Then(publish.Params(book)).Enqueue(ctx, q)
//	_, err := flow.Chain(pack, ship, bill).EnqueueTx(ctx, q, tx)
//
// A task that runs after others is [falldue.StateBlocked] until they are done. Its [Option] decides what happens when
// one of them is dead, cancelled or deleted.
package flow
