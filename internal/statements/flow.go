package statements

import "github.com/falldue/falldue/dialect"

// A task that runs after others, the waiter, is blocked, and has a row in {flows} and a row in
// {edges} for each of the others, its members. The settle of a member writes into the rows of
// that member alone, so that members do not wait for each other. Whether a waiter may open is
// read by a statement of its own after that commit: in the same one, two last members would
// each miss the other.

// OnDeath is what a waiter does when a member dies, is cancelled or is deleted.
type OnDeath int

// What a waiter may do.
const (
	DeathWait   OnDeath = iota // it stays blocked, until the member is retried
	DeathCancel                // it is cancelled
	DeathRun                   // it runs when all members have ended
	DeathFirst                 // it runs at the first death, and is cancelled if there is none
)

// OutcomeCancelled and the others are how members have ended, beside [StateDone] and [StateDead].
const (
	OutcomePending   = ""
	OutcomeCancelled = "cancelled"
	OutcomeDeleted   = "deleted"
)

// Waiter is a task that runs after others.
type Waiter struct {
	ID      int64
	OnDeath int    // an [OnDeath]
	State   string // of the task, or "" if it has gone
	Queue   string
}

// WaiterColumns are the columns of a result of [Waiters] and [ReadWaiter], and the first two
// those of the batch of [PutWaiters].
var WaiterColumns = Columns[Waiter]{
	col("task_id", Int, func(w *Waiter) any { return &w.ID }),
	col("on_death", Int, func(w *Waiter) any { return &w.OnDeath }),
	col("state", Text, func(w *Waiter) any { return &w.State }),
	col("queue", Text, func(w *Waiter) any { return &w.Queue }),
}

// Edge is a member and its waiter.
type Edge struct {
	Member, Waiter int64
	Outcome        string
}

// EdgeColumns are the columns of an edge, and the first two those of the batch of [PutEdges].
var EdgeColumns = Columns[Edge]{
	col("task_id", Int, func(e *Edge) any { return &e.Member }),
	col("waiter", Int, func(e *Edge) any { return &e.Waiter }),
	col("outcome", Text, func(e *Edge) any { return &e.Outcome }),
}

// putRows inserts the rows of a batch into a table.
func (b *builder) putRows(table string, columns []column, size int) Stmt {
	source := b.withBatch(columns, size)
	b.set("into", "{"+table+"}")
	b.set("columns", list(columns, ", ", func(c column) string { return c.Name }))
	if source.inValues() {
		b.set("rows", func() string { return b.values(columns, commas) })
		return b.stmt(`
insert into {into} ({columns})
values {rows}`)
	}
	return b.stmt(`
insert into {into} ({columns}) select s.* from {batch}`)
}

// PutWaiters stores waiters. The batch has the first two [WaiterColumns].
func PutWaiters(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).putRows("flows", WaiterColumns[:2].columns(), size)
}

// PutEdges stores edges. The batch has the first two [EdgeColumns].
func PutEdges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).putRows("edges", EdgeColumns[:2].columns(), size)
}

// Block blocks tasks that the same transaction has stored. The batch has [FenceColumns].
func Block(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateRows(FenceColumns.columns(), size, `state = 'blocked'`, anyClaim)
}

// MarkEdges says how members have ended. The batch has [IDColumns]. Parameters: outcome.
func MarkEdges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	if source.byKey() {
		return b.stmt(`
update {edges} as t set outcome = :outcome where {keys}`)
	}
	return b.stmt(`
update {edges} as t set outcome = {text :outcome} from {batch} where {same key}`)
}

// CorrectEdge says how a member has ended that was not settled: it was cancelled, deleted or
// retried. A member that is done stays done. Parameters: task_id, waiter, outcome.
func CorrectEdge(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {edges} set outcome = {text :outcome} where task_id = :task_id and waiter = :waiter and outcome <> 'done'`)
}

// StaleEdges selects up to :limit edges of :waiter after the member :after of which the
// outcome is not what the member's row says, as [EdgeColumns] with what that says.
func StaleEdges(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("truth", "case when k.id is null then 'deleted' when k.state in ('done', 'dead', 'cancelled') then k.state else '' end")
	return b.stmt(`
select e.task_id, e.waiter, {truth} as truth from {edges} e left join {tasks} k on k.id = e.task_id
where e.waiter = :waiter and e.task_id > :after and e.outcome <> 'done' and e.outcome <> {truth}
order by e.task_id limit :limit`)
}

// WaitersOf selects the waiters of a batch of members that are not done with. The batch has
// [IDColumns].
func WaitersOf(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	if source.byKey() {
		return b.stmt(`
select distinct t.waiter from {edges} t where {keys}`)
	}
	return b.stmt(`
select distinct t.waiter from {batch} join {edges} t on {same key}`)
}

// ReadWaiter selects a waiter as [WaiterColumns]. Parameters: id.
func ReadWaiter(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select f.task_id, f.on_death, coalesce(k.state, ''), coalesce(k.queue, '') from {flows} f left join {tasks} k on k.id = f.task_id
where f.task_id = :id`)
}

// Waiters selects up to :limit waiters after the one with the id :after, as [WaiterColumns].
func Waiters(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select f.task_id, f.on_death, coalesce(k.state, ''), coalesce(k.queue, '') from {flows} f left join {tasks} k on k.id = f.task_id
where f.task_id > :after order by f.task_id limit :limit`)
}

// PendingMember selects the first member of :waiter, from :since on, that has not ended.
func PendingMember(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select task_id from {edges} where waiter = :waiter and task_id >= :since and outcome = ''
order by task_id limit 1`)
}

// CountEdges selects how many members of :waiter have each outcome.
func CountEdges(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select outcome, count(*) from {edges} where waiter = :waiter group by outcome`)
}

// Members selects up to :limit edges of :waiter after the member :after, as [EdgeColumns].
func Members(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select task_id, waiter, outcome from {edges}
where waiter = :waiter and task_id > :after order by task_id limit :limit`)
}

// PendingEdges selects the edges of a member that has not ended, as [EdgeColumns]. Parameters: id.
func PendingEdges(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select task_id, waiter, outcome from {edges} where task_id = :id and outcome = ''`)
}

// OpenWaiter opens a blocked task. Parameters: id.
func OpenWaiter(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks} set state = 'open', updated_at = {greatest updated_at, {now}} where id = :id and state = 'blocked'`)
}

// CancelWaiter cancels a blocked task. Parameters: id.
func CancelWaiter(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks} set state = 'cancelled', updated_at = {now} where id = :id and state = 'blocked'`)
}

// DropEdges deletes the edges of :waiter.
func DropEdges(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {edges} where waiter = :waiter`)
}

// DropWaiter deletes a waiter. Parameters: id.
func DropWaiter(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {flows} where task_id = :id`)
}
