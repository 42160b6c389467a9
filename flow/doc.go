// Package flow makes tasks run after others: chains, graphs, and batches with a callback that
// runs when the batch is done or when one of its tasks is dead.
//
//	_, err := flow.Batch(pages...).Then(publish.Params(book)).Enqueue(ctx, q)
//	_, err := flow.Chain(pack, ship, bill).EnqueueTx(ctx, q, tx)
//
// A task that runs after other tasks has the state [falldue.StateBlocked] until these tasks, its dependencies, are
// done. Its [Option] decides what happens when a dependency is dead, cancelled or deleted.
package flow
