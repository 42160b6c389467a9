// Package falldue runs background tasks on the database that an application
// already has: PostgreSQL, MySQL, MariaDB, TiDB or SQLite.
//
// # A task falls due when the database says so
//
// A row stores the number of attempts of its task (attempts) and the time from which its wait counts (updated_at). A
// policy is an expression of the two, f, which gives the delay. falldue renders it into SQL, and the database evaluates
// it:
//
//	due  :=  updated_at + f(attempts) <= now
//
// No time of the next run is stored. A changed policy therefore applies immediately to every waiting task, without
// writing a row.
//
// # Use
//
// A [Kind] is a value shared by the code that enqueues tasks and the code that
// handles them. [New] makes a [Queue] on a *sqlx.DB, [Queue.Migrate] creates its
// tables, [Handle] registers a handler, and [Queue.Run] runs handlers until its
// context ends:
//
//	var Invoice = falldue.NewKind[InvoiceArgs]("invoice.send", falldue.KindConfig{
//		Policy:  backoff.Arctan(24 * time.Hour),
//		Timeout: time.Minute,
//	})
//
//	q, err := falldue.New(db, falldue.Config{})
//	err = q.Migrate(ctx)
//	falldue.Handle(q, Invoice, func(ctx context.Context, t falldue.Task[InvoiceArgs]) error { … })
//	receipt, err := Invoice.EnqueueTx(ctx, q, tx, InvoiceArgs{…})
//	err = q.Run(ctx)
//
// # The life of a task
//
// Data flows one way: enqueue → row → claim → handler → settle.
//
// A task that is enqueued in a transaction exists once the transaction commits. A [Unique] task is not stored while
// another task holds its unique key.
//
// A claim gives the task to a worker. It adds one to attempts and to fence, and moves updated_at to
// the end of a lease. The worker extends the lease while the handler runs. If the worker dies, the
// task falls due again.
//
// A settle records the outcome and ends the claim. If the handler returns nil, the task is done. If it
// returns an error, the task waits under its policy, or is dead when no attempt is left. [Discard],
// [Snooze] and [RetryAfter] return errors that ask for another outcome. A settle matches the fence, so
// that a worker that lost its lease cannot settle a task that another worker runs.
//
// A handler runs at least once. What it writes to the queue's database is
// written exactly once if the handler ends its task in the same transaction
// with [Task.DoneTx].
//
// # Packages
//
// Imports go one way, which a test enforces:
//
//	{internal/build, internal/cause, internal/chart, internal/dsn, internal/mysqlerror, internal/options, internal/pattern, internal/pgxdb, internal/storable, internal/words} ← {dialect, pgnotify} ← sqlgen ← {backoff, internal/statements} ← {backoff/policyflags, internal/store, migrations} ← {internal/lanes, internal/retry, internal/uniquekey} ← {internal/control, internal/overdue} ← {internal/news, internal/outcome} ← {internal/lease, internal/steplog} ← internal/run ← {internal/claim, internal/upkeep} ← internal/worker ← internal/hooks ← falldue ← {flow, many, periodic, steps} ← {ops, pgxqueue, sealed} ← signals ← {dash, queuetest} ← tasktest ← examples
//
// Package backoff has the policies, sqlgen the expressions behind them, and
// dialect the properties of each engine. Package internal/statements has the SQL
// of the queue, and internal/store runs it. Package queuetest is the conformance
// suite for any engine and driver. Package ops is for operators: it shows waiting tasks, the
// effect of policies, and the attempts that a task has left, and changes many tasks at a time.
// Package dash is a web page for operators, and package signals has metrics, log lines and
// health checks for other tools.
// Package flow makes tasks run after others, and package many runs a handler for many tasks together.
// Package steps divides a handler into steps whose results survive.
// Package periodic enqueues tasks at the times of cron expressions and intervals.
// Package tasktest helps programs to test their tasks. Package sealed encrypts and
// compresses payloads. Package pgxqueue makes a queue on a pool of pgx.
package falldue
