// Package periodic enqueues tasks at the times of cron expressions and intervals.
//
// A [Schedule] has a name, the times of its ticks, and the task that each tick enqueues. [New] takes the schedules of a
// program and returns a [Scheduler]. [Scheduler.Run] enqueues the tasks of the schedules until its context ends, and
// [Scheduler.RunWorker] runs the queue's worker as well. Any number of processes can run the same schedules. Each tick
// enqueues exactly one task, without a leader: the transaction that stores the task also moves the schedule to its next
// tick, and only one process can move the schedule. All times are by the database's clock.
//
// Schedules are rows of the table falldue_schedules. [List] returns all schedules, even in processes that do not define
// them, and [Pause], [Resume], [Trigger] and [Remove] change a schedule.
package periodic
