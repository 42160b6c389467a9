// Package periodic enqueues tasks at the times of cron expressions and intervals.
//
// A [Schedule] has a name, the times of its ticks, and the task that each tick enqueues. [New] takes the schedules of a
// program. [Scheduler.Run] enqueues their tasks until its context ends, in any process; [Scheduler.RunWorker] runs the
// queue's worker as well. Any number of processes may do so. Each tick enqueues exactly one task, without a leader: the
// transaction that stores the task also moves the schedule to its next tick, and only one process can move it. All
// times are by the database's clock.
//
// Schedules are rows of the table falldue_schedules. [List] shows them, even to processes that do not define them, and
// [Pause], [Resume], [Trigger] and [Remove] change them.
package periodic
