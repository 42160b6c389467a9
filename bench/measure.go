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
		about: "one worker processes the due tasks in the table until the last is settled. Its handlers do nothing, and done tasks stay in the table",
	},
	{name: "drain_deleted", unit: "tasks/s", settings: settings{done: deleted}, run: drainOf(1, 0, nil), about: "the same, but done tasks are deleted immediately"},
	{
		name: "drain_backlog", unit: "tasks/s", run: drainOf(1, 1, nil),
		about: "as drain_deleted (River keeps them), while %[1]s other tasks, of 8 kinds and with 25 different numbers of attempts, wait until tomorrow",
	},
	{
		name: "drain_snapshot", unit: "tasks/s", run: drainOf(2, 0, nil),
		also:  []string{"drain_snapshot_first", "drain_snapshot_last"},
		about: "as drain_deleted, with twice as many tasks, while a long-running transaction holds a snapshot; drain_snapshot_first and drain_snapshot_last are the rates of the first and the last tenth",
	},
	{
		name: "drain_lanes", unit: "tasks/s", settings: settings{done: deleted}, run: drainLanes,
		about: "as drain_deleted, but each task has one of 20,000 priorities, and so one of as many lanes",
	},
	{
		name: "drain_20_kinds", unit: "tasks/s", settings: settings{done: deleted, kinds: 20}, run: drainKinds(20),
		about: "as drain_deleted, but the tasks are of 20 kinds in turns",
	},
	{
		name: "drain_100_kinds", unit: "tasks/s", settings: settings{done: deleted, kinds: 100}, run: drainKinds(100),
		about: "the same with 100 kinds",
	},
	{
		name: "drain_keys", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainKeys(0),
		about: "as drain_deleted, but the tasks have 1,000 keys, and two tasks of a key may run concurrently",
	},
	{
		name: "drain_keys_saturated", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainKeys(1),
		about: "the same, while %[1]s other tasks wait, due, for running tasks of their key",
	},
	{
		name: "drain_beside_saturated", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainBesideSaturated,
		about: "as drain_deleted, while %[1]s other tasks wait, due, for running tasks of their key",
	},
	{
		name: "saturated_pickup_ms", unit: "ms", single: true, settings: settings{done: deleted, ordered: true}, run: pickupBesideSaturated,
		also:  []string{"saturated_alone_ms", "saturated_idle_per_s"},
		about: "the median time from the commit of a task to the start of its handler, alongside sequences whose first task has failed and waits until tomorrow; there is one sequence for ten tasks of --backlog, and each has a due task behind the first; half of the measured tasks have a new key, and half have none; saturated_alone_ms is the same without the sequences; saturated_idle_per_s is the number of statements a second while nothing can run, counted as in idle_statements_per_minute",
	},
	{
		name: "hot_keys", unit: "tasks/s", settings: settings{done: deleted, limited: true}, run: drainHotKeys,
		also:  []string{"hot_keys_ceiling", "hot_keys_empty_percent"},
		about: "eight workers of one process, each with a pool of its own, process the tasks of three keys, two of each key concurrently; a handler sleeps for 10 ms, and there are as many tasks as the handlers alone would take --while for; the time is from the start of the first handler to the end of the last; hot_keys_ceiling is the rate that the handlers alone allow, by how long they took, and hot_keys_empty_percent the share of claims that got no task",
	},
	{
		name: "weights_ratio", unit: "", single: true, settings: settings{done: deleted, weights: true}, run: measureWeights,
		also:  []string{"weights_alone_handlers", "weights_both_handlers"},
		about: "how many tasks of a tenant with the weight 3 start for each task of a tenant with the weight 1, for --while, while tasks of both wait; handlers sleep for 200 to 600 ms; weights_both_handlers is the mean number of busy handlers in that time, and weights_alone_handlers the number before, while only the tenant with the weight 1 has tasks",
	},
	{
		name: "campaign_ms", unit: "ms", single: true, settings: settings{done: deleted}, run: measureCampaign,
		also:  []string{"campaign_max_ms", "campaign_alone_ms", "campaign_ended", "campaign_ended_max"},
		about: "the median time from the commit of a tenant's single task, in the worker's process, to the start of its handler, while %[1]s tasks of another tenant are due and occupy all handlers, which sleep for 0.5 to 1.5 s; campaign_max_ms is the longest of 20 times, and campaign_alone_ms the median before the other tenant had tasks; campaign_ended is how many handlers of the other tenant ended from the begin of the enqueue to the start of the single task, the median, and campaign_ended_max the most",
	},
	{
		name: "drain_10_handlers", unit: "tasks/s", settings: settings{few: 10}, run: drainBusy,
		about: "as drain_deleted (River keeps them), with a fifth of the tasks, by 10 handlers, which each take a millisecond",
	},
	{
		name: "drain_with_history", unit: "tasks/s", settings: settings{done: deleted}, run: drainWithHistory,
		about: "as drain_deleted, while a hundred other workers write the history of their runs into the same rows, ten a second, as they do after each minute",
	},
	{
		name: "drain_flow", unit: "tasks/s", settings: settings{done: deleted}, run: drainFlow,
		about: "as drain_deleted, but the tasks are the members of one batch, after which one more task runs",
	},
	{
		name: "drain_1_process", unit: "tasks/s", run: drainWithProcesses(1),
		also:  []string{"client_us", "client_allocs", "memory_mb_1"},
		about: "as drain_deleted, but the worker has its own process, and the time is from its first task to its last; memory_mb_1 is the peak memory of that process, client_us its processor time (user and system, by getrusage) and client_allocs its allocations (runtime.MemStats.Mallocs), both for each task, from the start of its worker until all is settled, with all that a process does in addition to tasks",
	},
	{
		name: "drain_8_processes", unit: "tasks/s", run: drainWithProcesses(processCount),
		also:  []string{"memory_mb_8"},
		about: "the same with eight worker processes on one queue; memory_mb_8 is the peak memory of the largest",
	},
	{
		name: "memory_backlog_mb", unit: "MB", run: memoryWithBacklog,
		about: "the peak memory of a worker process during drain_deleted while %[1]s tasks wait until tomorrow",
	},
	{
		name: "deadlocks", unit: "", single: true, engines: []string{postgres, mySQL, mariaDB}, run: countDeadlocks,
		also:  []string{"storm_errors", "storm_enqueued", "storm_handled"},
		about: "deadlocks that the server counted while eight processes enqueued, claimed and settled tasks, and deleted those that had been done for a second, for as long as --storm says; storm_errors counts the errors that callers of falldue got, storm_enqueued and storm_handled are tasks per second",
	},
	{name: "fail", unit: "tasks/s", settings: settings{fails: true}, run: drainOf(1, 0, errHandler), about: "as drain_deleted, but each handler returns an error; the error is recorded, and the task waits until tomorrow"},
	{name: "enqueue_many", unit: "tasks/s", run: enqueueMany(subject.insert), about: "two clients enqueue 500 tasks per call"},
	{name: "enqueue_copy", unit: "tasks/s", run: enqueueMany(subject.copyIn), about: "two clients enqueue 5,000 tasks per call, by COPY"},
	{name: "enqueue_1", unit: "tasks/s", run: enqueueOnes(1), about: "one client enqueues tasks one by one, each in its own transaction"},
	{name: "enqueue_16", unit: "tasks/s", run: enqueueOnes(16), about: "16 clients do the same"},
	{
		name: "pickup_p50_ms", unit: "ms", settings: settings{notify: true}, run: pickup(false),
		also:  []string{"pickup_p99_ms"},
		about: "the median time from the commit of a task to the start of its handler in an idle worker, which another process tells nothing of the task but by the database (falldue on PostgreSQL: which listens; falldue-default probes); tasks are enqueued one by one, 50 to 100 ms apart at random, counted from the begin of an enqueue, for four times --while; pickup_p99_ms is the 99th percentile",
	},
	{
		name: "first_task_ms", unit: "ms", single: true, settings: settings{notify: true}, run: firstTask,
		also:  []string{"first_task_ms_max"},
		about: "the median of that time for five tasks, each after a silence (--silence, 15 s by default); first_task_ms_max is the longest of these times",
	},
	{name: "pickup_local_p50_ms", unit: "ms", run: pickup(true), also: []string{"pickup_local_p99_ms"},
		about: "as pickup_p50_ms, for tasks that the worker's own process enqueues; pickup_local_p99_ms is the 99th percentile"},
	{
		name: "steady_p50_ms", unit: "ms", single: true, settings: settings{notify: true}, engines: []string{postgres, mySQL, mariaDB}, run: steady("steady", false),
		also:  []string{"steady_p99_ms"},
		about: "the median time from the commit of a task to the start of its handler while 16 clients store 1,200 tasks a second one by one, on PostgreSQL in another process and elsewhere in the worker's own; tasks are taken to start in the order of their commits; steady_p99_ms is the 99th percentile",
	},
	{
		name: "steady_snapshot_p50_ms", unit: "ms", single: true, settings: settings{notify: true}, engines: []string{postgres, mySQL, mariaDB}, run: steady("steady_snapshot", true),
		also:  []string{"steady_snapshot_p99_ms"},
		about: "the same while overlapping transactions each hold a snapshot, all of them for 20 times --while; steady_snapshot_p99_ms is the 99th percentile",
	},
	{
		name: "idle_statements_per_minute", unit: "/min", single: true, settings: settings{notify: true, counts: true}, engines: []string{postgres, mySQL, mariaDB, sqlite}, run: idle,
		about: "the statements of a worker that has been idle for as long as --silence says, while %[1]s tasks wait until tomorrow (falldue on PostgreSQL: which listens), for ten times --while; PostgreSQL counts transactions, MySQL and MariaDB count all statements of the server, which must have no other user in the meantime, and on SQLite the driver counts",
	},
	{
		name: "idle_500_queues_per_s", unit: "/s", single: true, settings: settings{queues: 500, counts: true}, engines: []string{postgres, mySQL, mariaDB, sqlite}, run: idleQueues,
		also:  []string{"idle_1_queue_per_s"},
		about: "the statements a second of a worker of 500 queues that has been idle for as long as --silence says, while a task waits in each queue until tomorrow, counted as in idle_statements_per_minute; idle_1_queue_per_s is the same for a worker of the default queue, before",
	},
	{
		name: "profile_s", unit: "s", single: true, run: profileTime, also: []string{"profile_s_max"},
		about: "the seconds in which package ops reads the profile of %[1]s tasks that wait after failures, of 240 lanes and with anchors all over a day, which is what most of the time of falldue forecast and falldue policy diff is; the median of three readings, and profile_s_max is the longest",
	},
	{
		name: "claim_ms", unit: "ms", single: true, engines: []string{postgres, mySQL, mariaDB, tiDB}, run: claimCost,
		about: "the time of one claim of 100 tasks, while 10⁴ to %[1]s others wait",
	},
	{
		name: "counts_about_ms", unit: "ms", single: true, run: counts,
		also:  []string{"counts_ms"},
		about: "the time of Ops.EstimateCounts while %[1]s tasks wait, of 8 kinds and with 25 different numbers of attempts; counts_ms is the time of Ops.Counts",
	},
	{
		name: "dashboard_ms", unit: "ms", single: true, settings: settings{counts: true}, run: dashboard,
		also:  []string{"dashboard_first_ms", "dashboard_list_ms", "dashboard_statements", "dashboard_statements_100"},
		about: "the 95th percentile of the time of the first page of package dash for 100 viewers at the same moment, while %[1]s tasks with 100,000 task keys wait after failures; dashboard_first_ms is the longest of the first 100 views of a process, dashboard_list_ms the longest of ten lists of tasks, failures and queues, each viewed once, and dashboard_statements and dashboard_statements_100 are the statements of a first view and of 100 of them at the same moment, counted as in idle_statements_per_minute",
	},
	{
		name: "schedules_late_ms", unit: "ms", single: true, run: lateSchedules,
		also:  []string{"schedules_late_max_ms"},
		about: "the time from a tick of 1,000 schedules, which tick together, to when the last of their tasks is stored; the median of three ticks, and schedules_late_max_ms is the longest",
	},
	{
		name: "cancel_ms", unit: "ms", single: true, run: measureChanges,
		also:  []string{"cancel_max_ms", "resume_ms", "resume_max_ms"},
		about: "the median time from the cancel of a running task, in another process, to the end of its handler's context; resume_ms is that from a resumption to the start of a task that was paused; of ten times each, cancel_max_ms and resume_max_ms are the longest",
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
