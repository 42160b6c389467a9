// Package falldue runs background tasks on the database that an application
// already has: PostgreSQL, MySQL, MariaDB, TiDB or SQLite.
//
// # A task falls due when the database says so
//
// A row stores the number of a task's attempts (attempts) and the start of the task's wait (updated_at). A retry policy
// has a formula f that computes the delay from the attempts. falldue renders the formula as SQL, and the database
// evaluates it:
//
//	due  :=  updated_at + f(attempts) <= now
//
// The time of the next run is not stored. A changed policy therefore applies to every waiting task immediately, without
// writing a row.
//
// # Usage
//
// A [Kind] is a value shared by the code that enqueues tasks and the code that
// handles them. [New] returns a [Queue] on a *sqlx.DB, [Queue.Migrate] creates its
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
// A claim gives the task to a worker. It adds one to attempts and to fence, the task's fencing token. It also moves
// updated_at to the end of the lease: until then, the task belongs to the worker. The worker extends the lease while
// the handler runs. If the worker dies, the task falls due again.
//
// To settle a task is to record its outcome and end the claim. If the handler returns nil, the task is done. If the
// handler returns an error, the task waits for its policy's delay, or is dead when no attempt is left. The errors of
// [Discard], [Snooze] and [RetryAfter] ask for another outcome. Settling compares the fence: a worker that lost its
// lease cannot settle a task that another worker runs.
//
// A handler runs at least once. Its writes to the queue's database happen exactly once if the handler completes the
// task in the same transaction, with [Task.DoneTx].
//
// # Packages
//
// Package backoff contains the policies, sqlgen the expressions behind them, and dialect the properties of each
// engine. Package queuetest is the conformance suite for any engine and driver. Package ops is for operators: it shows
// waiting tasks, the effect of policies, and the attempts that a task has left, and changes many tasks at a time.
// Package dash is a web page for operators, and package signals provides metrics, log lines and health checks for
// other tools. Package flow runs tasks after other tasks, and package many runs a handler for many tasks together.
// Package steps divides a handler into steps, and retries keep the results of completed steps. Package periodic
// enqueues tasks at the times of cron expressions and intervals. Package tasktest helps you test tasks. Package sealed
// encrypts and compresses payloads. Package pgxqueue makes a queue on a pgx pool.
package falldue

// Imports go one way, which a test enforces:
//
//	{internal/build, internal/cause, internal/chart, internal/dsn, internal/mysqlerror, internal/options, internal/pattern, internal/pgxdb, internal/storable, internal/words} ← {dialect, pgnotify} ← sqlgen ← {backoff, internal/statements} ← {backoff/policyflags, internal/store, migrations} ← {internal/lanes, internal/retry, internal/uniquekey} ← {internal/control, internal/overdue} ← {internal/news, internal/outcome} ← {internal/lease, internal/steplog} ← internal/run ← {internal/claim, internal/upkeep} ← internal/worker ← internal/hooks ← falldue ← {flow, many, periodic, steps} ← {ops, pgxqueue, sealed} ← signals ← {dash, queuetest} ← tasktest ← examples
//
// Package internal/statements contains the SQL of the queue, and internal/store runs it.
