// Package falldue runs background tasks on the database that an application
// already has: PostgreSQL, MySQL, MariaDB or SQLite.
//
// # A task falls due when the database says so
//
// A row holds two facts: how often its task was tried (attempts), and the
// moment its wait counts from (updated_at). When it runs again is a policy, an
// expression over those facts, rendered into SQL and evaluated by the database:
//
//	due  :=  updated_at + f(attempts) <= now
//
// No "next run" is stored. So a policy that changes acts at once on every
// waiting task, and no row is written for it.
//
// # Use
//
// A [Kind] is a value that whoever enqueues and whoever handles share. [New]
// makes a [Queue] on a *sqlx.DB; [Queue.Migrate] creates its tables; [Handle]
// registers a handler; [Queue.Run] works until its context ends:
//
//	var Invoice = falldue.NewKind[InvoiceArgs]("invoice.send", falldue.KindConfig{
//		Policy:  backoff.Arctan(24 * time.Hour),
//		Timeout: time.Minute,
//	})
//
//	q, err := falldue.New(db, falldue.Config{})
//	err = q.Migrate(ctx)
//	falldue.Handle(q, Invoice, func(ctx context.Context, t falldue.Task[InvoiceArgs]) error { … })
//	id, err := Invoice.EnqueueTx(ctx, q, tx, InvoiceArgs{…}, nil)
//	err = q.Run(ctx)
//
// # The way of a task
//
// Data flows one way: enqueue → row → claim → handler → settle.
//
// A task enqueued in a transaction exists when that commits. A worker claims
// it: attempts goes up by one, fence too, and updated_at moves to the end of a
// lease, which the worker extends for as long as the handler runs; a worker
// that dies leaves a task that falls due by itself. The handler returns nil,
// and the task is done; an error, and it waits under its policy, or is dead;
// or what [Discard], [Snooze] and [RetryAfter] return. Settling matches on the
// fence, so that a worker that lost its lease cannot settle what another runs.
//
// A handler runs at least once. What it writes to the queue's own database is
// written exactly once if it ends its task in the same transaction:
// [Task.DoneTx].
//
// # Packages
//
// Imports go one way, and a test holds them to it:
//
//	dialect ← sqlgen ← {backoff, internal/statements} ← {internal/store, migrations} ← falldue ← queuetest ← {cmd, examples}
//
// Package backoff has the policies, sqlgen the expressions behind them, dialect
// what an engine is and can. internal/statements has the SQL of the queue, and
// internal/store runs it. queuetest is the conformance suite, for any engine and
// driver.
package falldue
