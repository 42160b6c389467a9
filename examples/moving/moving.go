// Package moving tests the programs of docs/moving: how jobs in Redis get into falldue's table, on
// real asynq and on jobs as Sidekiq and Faktory store them. It is a module of its own, so that
// falldue does not depend on other queues.
//
//   - asynq, sidekiq: programs that write waiting jobs as lines of JSON;
//   - enqueue: the program that enqueues these lines;
//   - before: the programs that the pages show before the move, which are only compiled.
package moving
