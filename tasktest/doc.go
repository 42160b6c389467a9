// Package tasktest tests programs that use falldue: which tasks they enqueue, what their handlers do, and when tasks
// are retried.
//
//   - [NewTaskOf] and [NewTask] make a task for calling a handler without a
//     database. [Asked] returns the outcome that the handler's error asks for.
//   - [RequireEnqueued], [RequireNoneEnqueued] and [All] check enqueued tasks. Their variants with Tx in the name also
//     see the tasks of a transaction before it commits.
//   - [RunOne] and [Drain] run the tasks that are due, one at a time and in the
//     goroutine of the test.
//   - [NewClock] returns a clock that a test can move, on a real database. A test of a
//     day of retries doesn't wait for a day.
//   - [AssertWait] and [AssertTotal] check when a policy retries tasks.
//
// The page docs/testing.md shows an example of each way.
package tasktest
