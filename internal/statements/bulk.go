package statements

import "github.com/falldue/falldue/dialect"

// Action is a change of tasks from outside their runs.
type Action int

// The actions.
const (
	// ActCancel cancels tasks that are not finished.
	ActCancel Action = iota
	// ActDelete deletes tasks that do not run.
	ActDelete
	// ActDeleteAny deletes tasks, including running ones.
	ActDeleteAny
	// ActRetry makes finished tasks wait again.
	ActRetry
	// ActRunNow makes waiting tasks due.
	ActRunNow
	// ActExpire cancels tasks that have not started in time.
	ActExpire
)

// allows returns the condition under which an action is allowed for a task t.
func (a Action) allows() string {
	switch a {
	case ActCancel:
		return " and t.state in ('blocked', 'open', 'snoozed')"
	case ActDelete:
		return " and not (t.state in ('open', 'snoozed') and t.claimed_by <> '' and t.updated_at > {now})"
	case ActRetry:
		return " and t.state in ('done', 'dead', 'cancelled')"
	case ActExpire:
		return " and t.state = 'open' and t.attempts = 0 and t.claimed_by = ''"
	case ActRunNow:
		return " and t.state in ('open', 'snoozed') and not (t.claimed_by <> '' and t.updated_at > {now})"
	}
	return ""
}

// Locking is how [Allowed] locks rows.
type Locking int

// The ways to lock rows.
const (
	// Unlocked locks nothing.
	Unlocked Locking = iota
	// LockedOrSkipped leaves out the rows that other transactions have locked, where the engine can do that.
	LockedOrSkipped
	// LockedInTurn waits for the rows that other transactions have locked.
	LockedInTurn
)

// AllowedParams are the conditions of [Allowed].
type AllowedParams struct {
	Action  Action
	Locking Locking
	State   bool // only tasks in the state :state
}

// AllowedTask is a task for which an action is allowed.
type AllowedTask struct {
	Key
	Queue   string // a notice of its retry names it
	Kind    string
	TaskKey string
	State   string
	// Worker has claimed the task, or is "".
	Worker   string
	Attempts int
	Lease    int64  // the microseconds left, or less than 1 after its end
	Unique   string // its unique key, or ""
}

// AllowedColumns are the columns of a result of [Allowed].
var AllowedColumns = join(
	within(FenceColumns, func(a *AllowedTask) *Key { return &a.Key }),
	Columns[AllowedTask]{
		col("queue", Text, func(a *AllowedTask) any { return &a.Queue }),
		col("kind", Text, func(a *AllowedTask) any { return &a.Kind }),
		col("task_key", Text, func(a *AllowedTask) any { return &a.TaskKey }),
		col("state", Text, func(a *AllowedTask) any { return &a.State }),
		col("claimed_by", Text, func(a *AllowedTask) any { return &a.Worker }),
		col("attempts", Int, func(a *AllowedTask) any { return &a.Attempts }),
		col("lease", Int, func(a *AllowedTask) any { return &a.Lease }),
		col("unique_key", Text, func(a *AllowedTask) any { return &a.Unique }),
	})

// Allowed selects those tasks of a batch for which an action is allowed, as
// [AllowedColumns]. The batch has [IDColumns].
func Allowed(s dialect.Server, tables dialect.Tables, p AllowedParams, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	switch {
	case p.Locking == Unlocked:
		b.set("for update", "")
	case p.Locking == LockedInTurn && s.Caps.LockRows:
		b.set("for update", " for update")
	}
	condition := p.Action.allows()
	switch {
	case p.State:
		condition += " and t.state = :state"
	case p.Action == ActRetry: // a done task is retried only on request
		condition += " and t.state <> 'done'"
	}
	b.set("allowed", condition)
	b.set("found", AllowedColumns.list("t.", map[string]string{
		"task_id": "t.id", "task_fence": "t.fence", "queue": "t.queue", "kind": "t.kind", "task_key": "t.task_key", "state": "t.state", "claimed_by": "coalesce(rtrim(t.claimed_by), '')", "attempts": "t.attempts", "lease": "case when t.claimed_by <> '' then {micros t.updated_at} - {micros {now}} else 0 end", "unique_key": "coalesce(t.unique_key, '')",
	}))
	if source.byKey() {
		return b.stmt(`
select {found} from {tasks} t where {keys}{allowed}{for update}`)
	}
	return b.stmt(`
select {found} from {batch} join {tasks} t on {same key}{allowed}{for update}`)
}

// CancelTasks cancels the tasks of a batch, and ends their claims. Like the statements below, it does
// not match tasks that have been claimed or changed since [Allowed] found them, even where Allowed locks
// nothing. A cancel raises the fence, so that a claim that has found the task before does not match either.
// The batch has [FenceColumns].
func CancelTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateTasks(FenceColumns.columns(), size,
		`fence = {next fence}, state = 'cancelled', claimed_by = '', updated_at = {now}`, ActCancel.allows())
}

// ExpireTasks is [CancelTasks] for tasks that have not started in time. Parameters: error.
func ExpireTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateTasks(FenceColumns.columns(), size,
		`fence = {next fence}, state = 'cancelled', updated_at = {now}, last_error = {text :error}`, ActExpire.allows())
}

// ExpireName is the name in a task's metadata of the time by which the task must have started. [RetryTasks] renames it
// to liftedName.
const ExpireName, liftedName = "falldue.expires", "falldue.expired"

// Revival is the time at which a retried task falls due.
type Revival struct {
	Key
	Wait int64 // microseconds from now
}

// RevivalColumns are the columns of the batches of [RetryTasks] and [RunTasks].
var RevivalColumns = join(
	within(FenceColumns, func(r *Revival) *Key { return &r.Key }),
	Columns[Revival]{col("wait", Int, func(r *Revival) any { return &r.Wait })})

// RetryTasks opens the tasks of a batch again, as if they had not been tried. It raises the fence
// of done tasks, so that permits no longer name them, as after a cancel. A dead task may halt a sequence
// until it has run again. With in_place = 1 a task comes before the tasks that were enqueued after it.
//
// RetryTasks renames the time by which a task should have started, so that it no longer applies. The replaced text
// ends with a quotation mark and a colon, which in JSON follow only a name.
// Parameters: in_place. The batch has [RevivalColumns].
func RetryTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("lifted", `{json replace({text t.metadata}, '"`+ExpireName+`":', '"`+liftedName+`":')}`)
	return b.updateTasks(RevivalColumns.columns(), size,
		`metadata = {lifted}, fence = case when t.state = 'done' then {next fence} else t.fence end, state = 'open', attempts = 0, updated_at = case when {int :in_place} = 1 then t.created_at else {shift {now}, s.wait} end, result = null`, ActRetry.allows())
}

// RunTasks makes the waiting tasks of a batch due. A task that has failed becomes snoozed, so that its attempts, its
// policy and its place in a sequence stay. A task that has not failed and would be due sooner stays as it is. If a task
// is due later than now, the lost claim of a dead worker ends: its lease would seem to last until then. The batch has
// [RevivalColumns].
func RunTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("then", "{shift {now}, s.wait}")
	return b.updateTasks(RevivalColumns.columns(), size, // the order matters where SET sees earlier assignments
		`updated_at = case when t.state = 'open' and t.attempts > 0 then {then} else {least t.updated_at, {then}} end, state = case when t.attempts > 0 then 'snoozed' else t.state end, claimed_by = case when s.wait > 0 then '' else t.claimed_by end`, ActRunNow.allows())
}

// ChangeWaiting gives a waiting task other settings, unless the task has been claimed or changed in the meantime. If the
// payload or the time is null, the task keeps its own. A task that has failed becomes snoozed: it is due at the time,
// without a delay. The lost claim of a dead worker ends: the next claim would take it for a claim with the new fence.
// Parameters: id, fence, queue, priority, key, unique, payload, at.
func ChangeWaiting(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks} as t
set fence = {next fence}, queue = :queue, priority = :priority, task_key = :key, unique_key = {text :unique},
	payload = coalesce({json {text :payload}}, payload), updated_at = coalesce({moment {int :at}}, updated_at),
	state = case when {int :at} is null or attempts = 0 then state else 'snoozed' end,
	claimed_by = ''
where id = :id and fence = :fence` + ActRunNow.allows())
}

// updateTasks changes those tasks t of a batch for which a condition holds. The first
// columns of the batch are [FenceColumns].
func (b *builder) updateTasks(columns []column, size int, set, condition string) Stmt {
	b.set("and owned", condition)
	b.set("returning", "")
	return b.update(columns, size, set)
}

// DeleteTasks deletes the tasks of a batch for which an action is allowed. The batch has
// [FenceColumns].
func DeleteTasks(s dialect.Server, tables dialect.Tables, a Action, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "id", "fence")
	b.set("table", "{tasks}")
	return b.stmt(source.delete() + a.allows())
}

// PutPayload replaces the payload of a task. Parameters: id, payload.
func PutPayload(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks} set payload = {json {text :payload}} where id = :id`)
}

// Span counts up to :limit tasks with IDs above :after that match the filter of a list, and
// selects the last task's ID. It has the parameters of [List].
func Span(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	b := newBuilder(s, tables)
	b.setFilter(p)
	b.set("last", "max")
	if p.Newest {
		b.set("last", "min")
	}
	return b.stmt(`
select count(*), coalesce({last}(id), 0) from (select id from {tasks}
where {after}{filter}{in state}
order by {by id} limit :limit) t`)
}
