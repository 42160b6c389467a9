// Package steps divides a handler into steps whose results survive: a step that has succeeded does not
// run again in later attempts of its task.
//
//	charge, err := steps.Do(ctx, t, "charge", func(ctx context.Context) (string, error) { … })
//	label, err := steps.Do(ctx, t, "label", func(ctx context.Context) (string, error) { … })
//
// Use [Do] for calls to other systems, [DoTx] for writes to the queue's database, which happen exactly
// once, and [DoFrom] for long loops, which continue where they stopped.
//
// The steps of a task run one after another, in the same order and with the same names in each attempt. A task has up
// to 1,000 steps. Steps are stored in the queue's database, and are deleted with their task.
package steps
