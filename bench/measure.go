package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// measure is one thing that is measured of every system.
type measure struct {
	name  string
	unit  string // of its values
	about string // what is measured, for the report
	// also names the figures that come with the measure, in the order of reports. about
	// says what they are.
	also     []string
	settings settings
	// single means that one round is enough: the value is a count, or is already
	// a median.
	single bool
	// engines are those that have the measure; empty means all.
	engines []string
	// run measures a subject on a new database.
	run func(ctx context.Context, c *config, db database, s subject) (values, error)
}

// values holds the results of one run. A key is the name of a measure, or a
// measure and a system: "claim_ms_10000 naive". The key "" stands for the measure
// that ran; a key without a system stands for the system that ran.
type values map[string]float64

func (v values) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, strings.TrimSpace(name+" "+number(v[name])))
	}
	return strings.Join(list, ", ")
}

// measures lists all measures, in the order in which they run.
var measures = []measure{
	{
		name: "drain_kept", unit: "tasks/s", settings: settings{done: kept}, run: drainOf(1, 0, nil),
		about: "one worker processes the due tasks in the table until the last outcome is recorded. Its handlers do nothing, and done tasks stay in the table",
	},
	{name: "drain_deleted", unit: "tasks/s", settings: settings{done: deleted}, run: drainOf(1, 0, nil), about: "like drain_kept, but done tasks are deleted immediately"},
	{
		name: "drain_backlog", unit: "tasks/s", run: drainOf(1, 1, nil),
		about: "like drain_deleted (River keeps done tasks), while %[1]s other tasks wait until tomorrow. These have 8 kinds and 25 different numbers of attempts",
	},
	{
		name: "drain_snapshot", unit: "tasks/s", run: drainOf(2, 0, nil),
		also:  []string{"drain_snapshot_first", "drain_snapshot_last"},
		about: "like drain_deleted, with twice as many tasks, while a long-running transaction holds a snapshot. drain_snapshot_first and drain_snapshot_last are the rates of the first and the last tenth of the tasks",
	},
	{
		name: "drain_lanes", unit: "tasks/s", settings: settings{done: deleted}, run: drainLanes,
		about: "like drain_deleted, but the tasks have 20,000 different priorities, and so are in 20,000 lanes",
	},
	{
		name: "drain_20_kinds", unit: "tasks/s", settings: settings{done: deleted, kinds: 20}, run: drainKinds(20),
		about: "like drain_deleted, but the tasks have 20 kinds, which alternate",
	},
	{
		name: "drain_100_kinds", unit: "tasks/s", settings: settings{done: deleted, kinds: 100}, run: drainKinds(100),
		about: "like drain_20_kinds, with 100 kinds",
	},
	{
		name: "drain_keys", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainKeys(0),
		about: "like drain_deleted, but the tasks have 1,000 keys, and two tasks of a key may run concurrently",
	},
	{
		name: "drain_keys_unlimited", unit: "tasks/s", settings: settings{done: deleted}, run: drainKeys(0),
		about: "like drain_keys, without the limit",
	},
	{
		name: "drain_keys_saturated", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainKeys(1),
		about: "like drain_keys, while %[1]s other due tasks wait because two tasks of their key are running",
	},
	{
		name: "drain_beside_saturated", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainBesideSaturated,
		about: "like drain_deleted, while %[1]s other due tasks wait because two tasks of their key are running",
	},
	{
		name: "saturated_pickup_ms", unit: "ms", single: true, settings: settings{done: deleted, ordered: true}, run: pickupBesideSaturated,
		also:  []string{"saturated_alone_ms", "saturated_idle_per_s"},
		about: "the median time from the commit of a task to the start of its handler, while many sequences are blocked. There is one sequence for ten tasks of --backlog. The first task of each has failed and waits until tomorrow, and a due task waits behind it. Half of the measured tasks have a new key, and half have none. saturated_alone_ms is the time without the sequences. saturated_idle_per_s is the number of statements per second while no task can run, counted as in idle_statements_per_minute",
	},
	{
		name: "hot_keys", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainHotKeys,
		also:  []string{"hot_keys_ceiling", "hot_keys_empty_percent"},
		about: "eight workers in one process, each with a separate pool, process tasks with three keys, two tasks of each key concurrently. A handler sleeps for 10 ms, and there are enough tasks to keep the handlers busy for --while. The time is from the start of the first handler to the end of the last. hot_keys_ceiling is the rate that the duration of the handlers allows. hot_keys_empty_percent is the share of claims that got no task",
	},
	{
		name: "weights_ratio", unit: "", single: true, settings: settings{done: deleted, weights: true}, run: measureWeights,
		also:  []string{"weights_alone_handlers", "weights_both_handlers"},
		about: "the number of started tasks of a tenant with weight 3 for each started task of a tenant with weight 1. It is measured for --while, while tasks of both wait. Handlers sleep for 200 to 600 ms. weights_both_handlers is the mean number of busy handlers in that time. weights_alone_handlers is the number before that, while only the tenant with weight 1 has tasks",
	},
	{
		name: "campaign_ms", unit: "ms", single: true, settings: settings{done: deleted}, run: measureCampaign,
		also:  []string{"campaign_max_ms", "campaign_alone_ms", "campaign_ended", "campaign_ended_max"},
		about: "the median time from the commit of a tenant's single task, enqueued in the worker's process, to the start of its handler. In the meantime, %[1]s due tasks of another tenant occupy all handlers, which sleep for 0.5 to 1.5 s. campaign_max_ms is the longest of 20 times, and campaign_alone_ms is the median before the other tenant had tasks. campaign_ended is the median number of handlers of the other tenant that ended between the enqueue and the start of the single task, and campaign_ended_max is the highest number",
	},
	{
		name: "drain_10_handlers", unit: "tasks/s", settings: settings{few: 10}, run: drainBusy,
		about: "like drain_deleted (River keeps done tasks), with a fifth of the tasks and 10 handlers, which take a millisecond each",
	},
	{
		name: "drain_with_history", unit: "tasks/s", settings: settings{done: deleted}, run: drainWithHistory,
		about: "like drain_deleted, while a hundred other workers write the history of their runs into the same rows, as workers do after each minute. Here, ten of them write each second",
	},
	{
		name: "drain_flow", unit: "tasks/s", settings: settings{done: deleted}, run: drainFlow,
		about: "like drain_deleted, but the tasks are members of one batch. One more task runs after the batch",
	},
	{
		name: "drain_1_process", unit: "tasks/s", run: drainWithProcesses(1),
		also:  []string{"client_us", "client_allocs", "memory_mb_1"},
		about: "like drain_deleted, but the worker runs in a separate process, and the time is from its first task to its last. memory_mb_1 is the peak memory of that process. client_us is its processor time for each task (user and system, from getrusage), and client_allocs is its number of allocations for each task (runtime.MemStats.Mallocs). Both are measured from the start of the worker until all outcomes are recorded, and include everything else that the process does",
	},
	{
		name: "drain_8_processes", unit: "tasks/s", run: drainWithProcesses(processCount),
		also:  []string{"memory_mb_8"},
		about: "like drain_1_process, with eight worker processes on one queue. memory_mb_8 is the peak memory of the largest process",
	},
	{
		name: "memory_backlog_mb", unit: "MB", run: memoryWithBacklog,
		about: "the peak memory of a worker process during drain_deleted, while %[1]s tasks wait until tomorrow",
	},
	{
		name: "deadlocks", unit: "", single: true, engines: []string{postgres, mySQL, mariaDB}, run: countDeadlocks,
		also:  []string{"storm_errors", "storm_enqueued", "storm_handled"},
		about: "the number of deadlocks on the server while eight processes enqueue, claim and complete tasks, and delete tasks that have been done for a second. It is measured for --storm. storm_errors is the number of errors that callers of falldue get. storm_enqueued and storm_handled are the rates in tasks per second",
	},
	{name: "fail", unit: "tasks/s", settings: settings{fails: true}, run: drainOf(1, 0, errHandler), about: "like drain_deleted, but each handler returns an error. The error is recorded, and the task waits until tomorrow"},
	{name: "enqueue_many", unit: "tasks/s", run: enqueueMany(subject.insert), about: "two clients enqueue 500 tasks per call"},
	{name: "enqueue_copy", unit: "tasks/s", run: enqueueMany(subject.copyIn), about: "two clients enqueue 5,000 tasks per call, with COPY"},
	{name: "enqueue_1", unit: "tasks/s", run: enqueueOnes(1), about: "one client enqueues tasks one by one, each in its own transaction"},
	{name: "enqueue_16", unit: "tasks/s", run: enqueueOnes(16), about: "like enqueue_1, with 16 clients"},
	{
		name: "pickup_p50_ms", unit: "ms", settings: settings{notify: true}, run: pickup(false),
		also:  []string{"pickup_p99_ms"},
		about: "the median time from the commit of a task to the start of its handler in an idle worker. The task is enqueued by another process, so the worker learns of it only through the database. On PostgreSQL, falldue listens for notifications, and falldue-default probes. Tasks are enqueued one by one, at random intervals of 50 to 100 ms between the beginnings of enqueues, for four times --while. pickup_p99_ms is the 99th percentile",
	},
	{
		name: "first_task_ms", unit: "ms", single: true, settings: settings{notify: true}, run: firstTask,
		also:  []string{"first_task_ms_max"},
		about: "like pickup_p50_ms, but the median for five tasks, each after a silence (--silence, 15 s by default). first_task_ms_max is the longest of these times",
	},
	{name: "pickup_local_p50_ms", unit: "ms", run: pickup(true), also: []string{"pickup_local_p99_ms"},
		about: "like pickup_p50_ms, for tasks that the worker's own process enqueues. pickup_local_p99_ms is the 99th percentile"},
	{
		name: "steady_p50_ms", unit: "ms", single: true, settings: settings{notify: true}, engines: []string{postgres, mySQL, mariaDB}, run: steady("steady", false),
		also:  []string{"steady_p99_ms"},
		about: "the median time from the commit of a task to the start of its handler, while 16 clients enqueue 1,200 tasks per second, one by one. The clients are in another process on PostgreSQL, and in the worker's process on the other databases. The calculation assumes that tasks start in the order of their commits. steady_p99_ms is the 99th percentile",
	},
	{
		name: "steady_snapshot_p50_ms", unit: "ms", single: true, settings: settings{notify: true}, engines: []string{postgres, mySQL, mariaDB}, run: steady("steady_snapshot", true),
		also:  []string{"steady_snapshot_p99_ms"},
		about: "like steady_p50_ms, while overlapping transactions each hold a snapshot, together for 20 times --while. steady_snapshot_p99_ms is the 99th percentile",
	},
	{
		name: "idle_statements_per_minute", unit: "/min", single: true, settings: settings{notify: true, counts: true}, engines: []string{postgres, mySQL, mariaDB, sqlite}, run: idle,
		about: "the number of statements per minute of an idle worker, while %[1]s tasks wait until tomorrow. The worker has been idle for --silence, and on PostgreSQL falldue listens. The statements are counted for ten times --while. PostgreSQL counts transactions. MySQL and MariaDB count all statements of the server, so the server must have no other users. On SQLite, the driver counts",
	},
	{
		name: "idle_500_queues_per_s", unit: "/s", single: true, settings: settings{queues: 500, counts: true}, engines: []string{postgres, mySQL, mariaDB, sqlite}, run: idleQueues,
		also:  []string{"idle_1_queue_per_s"},
		about: "the number of statements per second of a worker with 500 queues that has been idle for --silence, while a task waits in each queue until tomorrow. It is counted as in idle_statements_per_minute. idle_1_queue_per_s is the number for a worker with only the default queue, measured before",
	},
	{
		name: "profile_s", unit: "s", single: true, run: profileTime, also: []string{"profile_s_max"},
		about: "the time in which package ops reads the profile of %[1]s tasks that wait after failures, in 240 lanes and with anchors spread over a day. This is most of the time that falldue forecast and falldue policy diff take. The figure is the median of three readings, and profile_s_max is the longest",
	},
	{
		name: "claim_ms", unit: "ms", single: true, engines: []string{postgres, mySQL, mariaDB, tiDB}, run: claimCost,
		about: "the time of one claim of 100 tasks, while 10,000 to %[1]s other tasks wait",
	},
	{
		name: "counts_about_ms", unit: "ms", single: true, run: counts,
		also:  []string{"counts_ms"},
		about: "the time of Ops.EstimateCounts, while %[1]s tasks with 8 kinds and 25 different numbers of attempts wait. counts_ms is the time of Ops.Counts",
	},
	{
		name: "dashboard_ms", unit: "ms", single: true, settings: settings{counts: true}, run: dashboard,
		also:  []string{"dashboard_first_ms", "dashboard_list_ms", "dashboard_statements", "dashboard_statements_100"},
		about: "the 95th percentile of the response time of the first page of package dash, for 100 concurrent viewers, while %[1]s tasks with 100,000 task keys wait after failures. dashboard_first_ms is the longest time of the first 100 views of a process. dashboard_list_ms is the longest time of ten lists of tasks, failures and queues, each viewed once. dashboard_statements is the number of statements of a first view, and dashboard_statements_100 of 100 concurrent views, counted as in idle_statements_per_minute",
	},
	{
		name: "schedules_late_ms", unit: "ms", single: true, run: lateSchedules,
		also:  []string{"schedules_late_max_ms"},
		about: "the time from a simultaneous tick of 1,000 schedules until the last of their tasks is inserted. The figure is the median of three ticks, and schedules_late_max_ms is the longest",
	},
	{
		name: "cancel_ms", unit: "ms", single: true, run: measureChanges,
		also:  []string{"cancel_max_ms", "resume_ms", "resume_max_ms"},
		about: "the median time from the cancel of a running task, in another process, to the end of its handler's context. resume_ms is the median time from resuming to the start of a paused task. Each is measured ten times, and cancel_max_ms and resume_max_ms are the longest times",
	},
}

// drainOf measures how fast one worker processes times*config.tasks tasks.
func drainOf(times, backlog int, outcome error) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		n := times * c.tasks
		if backlog > 0 {
			if err := s.insertWaiting(ctx, c.backlog); err != nil {
				return nil, err
			}
		}
		if err := s.insert(ctx, n); err != nil {
			return nil, err
		}
		if err := db.analyze(ctx); err != nil {
			return nil, err
		}
		snapshot := times > 1
		if snapshot {
			release, err := db.holdSnapshot(ctx)
			if err != nil {
				return nil, err
			}
			defer release()
		}
		took, first, last, err := drain(ctx, c, s, n, outcome)
		if err != nil {
			return nil, err
		}
		v := values{"": perSecond(n, took)}
		if snapshot {
			v["drain_snapshot_first"], v["drain_snapshot_last"] = perSecond(n/10, first), perSecond(n/10, last)
		}
		return v, nil
	}
}

// drain processes n tasks with one worker. It returns the time from the start of
// the worker to its end, when all tasks are settled, and the times that the
// handlers of the first and of the last tenth took.
func drain(ctx context.Context, c *config, s subject, n int, outcome error) (took, first, last time.Duration, err error) {
	var handled atomic.Int64
	var firstTenth, lastTenth atomic.Int64 // moments since begin
	done := make(chan struct{})
	// The label marks in a profile what belongs to the worker.
	ctx = pprof.WithLabels(ctx, pprof.Labels("phase", "work"))
	pprof.SetGoroutineLabels(ctx)
	defer pprof.SetGoroutineLabels(context.Background())
	begin := time.Now()
	stop, err := s.work(ctx, func() error {
		switch handled.Add(1) {
		case int64(n / 10):
			firstTenth.Store(int64(time.Since(begin)))
		case int64(n - n/10):
			lastTenth.Store(int64(time.Since(begin)))
		case int64(n):
			last = time.Since(begin)
			close(done)
		}
		return outcome
	})
	if err != nil {
		return 0, 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		return 0, 0, 0, errors.Join(fmt.Errorf("%d of %d tasks handled: %w", handled.Load(), n, ctx.Err()), stop())
	}
	if err := stop(); err != nil {
		return 0, 0, 0, err
	}
	took = time.Since(begin)
	if extra := handled.Load() - int64(n); extra > 0 {
		return 0, 0, 0, fmt.Errorf("%d handlers ran that should not have", extra)
	}
	return took, time.Duration(firstTenth.Load()), last - time.Duration(lastTenth.Load()), nil
}

// drainBusy measures how fast one worker processes tasks whose handlers take a millisecond.
func drainBusy(ctx context.Context, c *config, db database, s subject) (values, error) {
	n := max(c.tasks/5, 1)
	if err := errors.Join(s.insert(ctx, n), db.analyze(ctx)); err != nil {
		return nil, err
	}
	took, _, _, err := drain(ctx, c, busy{s}, n, nil)
	return values{"": perSecond(n, took)}, err
}

// busy is a subject whose handlers take a millisecond each.
type busy struct{ subject }

func (b busy) work(ctx context.Context, handle func() error) (func() error, error) {
	return b.subject.work(ctx, func() error {
		time.Sleep(time.Millisecond)
		return handle()
	})
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// enqueueMany measures how fast store stores many tasks.
func enqueueMany(store func(subject, context.Context, int) error) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, _ database, s subject) (values, error) {
		if err := store(s, ctx, 1); err != nil { // opens connections and prepares statements
			return nil, err
		}
		begin := time.Now()
		err := store(s, ctx, c.tasks)
		return values{"": perSecond(c.tasks, time.Since(begin))}, err
	}
}

// enqueueOnes measures how many tasks clients store one by one in config.while.
func enqueueOnes(clients int) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, _ database, s subject) (values, error) {
		storing := func(ctx context.Context) (n int, err error) {
			var stored atomic.Int64
			err = loops(ctx, clients, func(ctx context.Context) error {
				for ctx.Err() == nil {
					if err := s.insertOne(context.WithoutCancel(ctx)); err != nil {
						return err
					}
					stored.Add(1)
				}
				return nil
			})
			return int(stored.Load()), err
		}
		warm, cancel := context.WithTimeout(ctx, c.while/10)
		defer cancel()
		if _, err := storing(warm); err != nil {
			return nil, err
		}
		timed, cancel := context.WithTimeout(ctx, c.while)
		defer cancel()
		begin := time.Now()
		n, err := storing(timed)
		return values{"": perSecond(n, time.Since(begin))}, err
	}
}

// pick returns the named measures of an engine, or all if there are no names.
func pick(engine string, names []string) ([]measure, error) {
	var list []measure
	var known []string
	for _, m := range measures {
		if len(m.engines) > 0 && !slices.Contains(m.engines, engine) {
			continue
		}
		known = append(known, m.name)
		if len(names) == 0 || slices.Contains(names, m.name) {
			list = append(list, m)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("measure %q; those on %s are %s", name, engine, strings.Join(known, ", "))
		}
	}
	return list, nil
}
