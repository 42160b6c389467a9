package statements

import "github.com/falldue/falldue/dialect"

// A task that runs after others, the waiter, is blocked, and has a row in {flows} and a row in
// {edges} for each of the others, its members. The settle of a member writes only into the rows
// of that member, so that members do not wait for each other. After the commit, another statement
// reads whether a waiter may open: in the same transaction, two last members would each miss the
// other's end.

// OnDeath is the reaction of a waiter to a member that dies, is cancelled or is deleted.
type OnDeath int

// The reactions of waiters.
const (
	DeathWait   OnDeath = iota // it stays blocked, until the member is retried
	DeathCancel                // it is cancelled
	DeathRun                   // it runs when all members have ended
	DeathFirst                 // it runs at the first death, and is cancelled if there is none
)

// OutcomeCancelled and the others are outcomes of members, in addition to [StateDone] and [StateDead].
const (
	OutcomePending   = ""
	OutcomeCancelled = "cancelled"
	OutcomeDeleted   = "deleted"
)

// Waiter is a task that runs after others.
type Waiter struct {
	ID      int64
	OnDeath int // an [OnDeath]
}

// WaiterColumns are the columns of the batch of [PutWaiters].
var WaiterColumns = Columns[Waiter]{
	col("task_id", Int, func(w *Waiter) any { return &w.ID }),
	col("on_death", Int, func(w *Waiter) any { return &w.OnDeath }),
}

// WaiterState is a waiter, and which outcomes its members have.
type WaiterState struct {
	Waiter
	State string // of the task, or "" if the task is gone
	Queue string
	// Each is 1 if there is such a member.
	Pending, Dead, Cancelled, Deleted int
}

// WaiterStateColumns are the columns of a result of [Waiters] and [WaitersByID].
var WaiterStateColumns = join(
	within(WaiterColumns, func(w *WaiterState) *Waiter { return &w.Waiter }),
	Columns[WaiterState]{
		col("state", Text, func(w *WaiterState) any { return &w.State }),
		col("queue", Text, func(w *WaiterState) any { return &w.Queue }),
		col("pending", Int, func(w *WaiterState) any { return &w.Pending }),
		col("dead", Int, func(w *WaiterState) any { return &w.Dead }),
		col("cancelled", Int, func(w *WaiterState) any { return &w.Cancelled }),
		col("deleted", Int, func(w *WaiterState) any { return &w.Deleted }),
	})

// Edge is a member and its waiter.
type Edge struct {
	Member, Waiter int64
	Outcome        string
}

// EdgeKeyColumns are the columns of the batches of [PutEdges] and [DropEdges].
var EdgeKeyColumns = Columns[Edge]{
	col("task_id", Int, func(e *Edge) any { return &e.Member }),
	col("waiter", Int, func(e *Edge) any { return &e.Waiter }),
}

// EdgeColumns are the columns of a result of [EdgesOf] and [PendingEdges].
var EdgeColumns = join(EdgeKeyColumns, Columns[Edge]{col("outcome", Text, func(e *Edge) any { return &e.Outcome })})

// CheckedEdge is an edge alongside the states of its two tasks.
type CheckedEdge struct {
	Edge
	Truth  string // the outcome that the member's row gives
	Waiter string // the state of the waiter, or "" if the waiter is gone
}

// CheckedEdgeColumns are the columns of a result of [EdgePage].
var CheckedEdgeColumns = join(
	within(EdgeColumns, func(c *CheckedEdge) *Edge { return &c.Edge }),
	Columns[CheckedEdge]{
		col("truth", Text, func(c *CheckedEdge) any { return &c.Truth }),
		col("waiter_state", Text, func(c *CheckedEdge) any { return &c.Waiter }),
	})

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

// PutWaiters stores waiters. The batch has [WaiterColumns].
func PutWaiters(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).putRows("flows", WaiterColumns.columns(), size)
}

// PutEdges stores edges. The batch has [EdgeKeyColumns].
func PutEdges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).putRows("edges", EdgeKeyColumns.columns(), size)
}

// Block blocks tasks that the same transaction has stored. The batch has [FenceColumns].
func Block(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateRows(FenceColumns.columns(), size, `state = 'blocked'`, anyClaim)
}

// MarkEdges records how members have ended. A done member that is deleted stays done.
// The batch has [IDColumns]. Parameters: outcome, and deleted = 1 if it is [OutcomeDeleted]: MariaDB cannot compare a
// parameter with a literal in a session whose collation_connection is not the character set's default.
func MarkEdges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setMembers(size)
	return b.stmt(`
update {edges} as t set outcome = {text :outcome} where {of members} and (t.outcome <> 'done' or {int :deleted} = 0)`)
}

// setMembers sets the fragment {of members}, which is true for the edges t of a batch of
// members. It looks the edges up in the index: a member can have any number of waiters, so a
// join would read the whole table while the table has no statistics.
func (b *builder) setMembers(size int) {
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.set("of members", func() string {
		if source.byKey() {
			return b.expand("{keys}")
		}
		return b.expand("t.task_id = any(array(select s.task_id from {batch}))")
	})
}

// Neighbor is an edge with the task at its other end.
type Neighbor struct {
	Edge
	Kind, State string // "" if that task is gone
}

// NeighborColumns are the columns of a result of [Neighbors].
var NeighborColumns = join(
	within(EdgeColumns, func(s *Neighbor) *Edge { return &s.Edge }),
	Columns[Neighbor]{
		col("kind", Text, func(s *Neighbor) any { return &s.Kind }),
		col("state", Text, func(s *Neighbor) any { return &s.State }),
	})

// Neighbors selects up to :limit edges as [NeighborColumns]: from a batch of waiters to their members, or, if after is
// set, from a batch of members to their waiters. The batch has [IDColumns].
func Neighbors(s dialect.Server, tables dialect.Tables, size int, after bool) Stmt {
	b := newBuilder(s, tables)
	near, far, order := "waiter", "task_id", "t.outcome, t.task_id"
	if after {
		near, far, order = far, near, "t.waiter"
	}
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, near)
	b.set("far", far)
	b.set("order", order)
	if source.byKey() {
		return b.stmt(`
select t.task_id, t.waiter, t.outcome, coalesce(k.kind, ''), coalesce(k.state, '')
from {edges} t left join {tasks} k on k.id = t.{far}
where {keys} limit :limit`)
	}
	// The order is an index's order. Without it, statistics would make PostgreSQL read the table.
	return b.stmt(`
select e.task_id, e.waiter, e.outcome, coalesce(k.kind, ''), coalesce(k.state, '') from {batch} cross join lateral (
	select t.task_id, t.waiter, t.outcome from {edges} t where {same key} order by {order} limit :limit) e
left join {tasks} k on k.id = e.{far} limit :limit`)
}

// EdgePage selects up to :limit edges after the edge of the member :task_id and the :waiter, as
// [CheckedEdgeColumns]. With a range of two columns MySQL would read the whole table.
func EdgePage(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select e.task_id, e.waiter, e.outcome, case when k.id is null then 'deleted' when k.state in ('done', 'dead', 'cancelled') then k.state else '' end, coalesce(w.state, '')
from (select task_id, waiter, outcome from {edges} where task_id >= :task_id and (task_id > :task_id or waiter > :waiter) order by task_id, waiter limit :limit) e
left join {tasks} k on k.id = e.task_id left join {tasks} w on w.id = e.waiter
order by e.task_id, e.waiter`)
}

// CorrectEdge replaces the outcome of a member, unless the outcome has changed since it was read.
// Parameters: task_id, waiter, was, outcome.
func CorrectEdge(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {edges} set outcome = {text :outcome} where task_id = :task_id and waiter = :waiter and outcome = :was`)
}

// WaitersOf selects the waiters of a batch of members. The batch has [IDColumns].
func WaitersOf(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setMembers(size)
	return b.stmt(`
select distinct t.waiter from {edges} t where {of members}`)
}

// waiterState sets the fragment {state}, the columns of a waiter t whose task is k. Each
// question about the waiter's members is a look-up in an index, however many members there are.
//
// PostgreSQL would read the table for an outcome that it takes for one of several frequent
// outcomes. So each condition is a range: only the index's order gives the first edge of a range.
func (b *builder) waiterState() {
	b.set("any", func(outcome string) string {
		return "coalesce((select 1 from " + b.expand("{edges}") + " e where e.waiter = t.task_id and e.outcome >= " + outcome + " and e.outcome <= " + outcome + " order by e.outcome, e.task_id limit 1), 0)"
	})
	b.set("state", "t.task_id, t.on_death, coalesce(k.state, ''), coalesce(k.queue, ''), {any ''}, {any 'dead'}, {any 'cancelled'}, {any 'deleted'}")
}

// WaitersByID selects waiters as [WaiterStateColumns]. The batch has [IDColumns].
func WaitersByID(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.waiterState()
	if source.byKey() {
		return b.stmt(`
select {state} from {flows} t left join {tasks} k on k.id = t.task_id
where {keys}`)
	}
	return b.stmt(`
select {state} from {batch} join {flows} t on {same key} left join {tasks} k on k.id = t.task_id`)
}

// Waiters selects up to :limit waiters after the one with the ID :after, as
// [WaiterStateColumns].
func Waiters(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.waiterState()
	return b.stmt(`
select {state} from {flows} t left join {tasks} k on k.id = t.task_id
where t.task_id > :after order by t.task_id limit :limit`)
}

// CountEdges selects how many members of :waiter have each outcome.
func CountEdges(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select outcome, count(*) from {edges} where waiter = :waiter group by outcome`)
}

// Members selects up to :limit IDs of members of :waiter with an outcome, after :after.
func Members(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select task_id from {edges}
where waiter = :waiter and outcome = :outcome and task_id > :after order by task_id limit :limit`)
}

// EdgesOf selects up to :limit edges of the deleted waiters in a batch, as [EdgeColumns].
// The batch has [IDColumns].
func EdgesOf(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "waiter")
	if source.byKey() {
		return b.stmt(`
select t.task_id, t.waiter, t.outcome from {edges} t where {keys} and not exists (select 1 from {tasks} k where k.id = t.waiter) limit :limit`)
	}
	return b.stmt(`
select e.task_id, e.waiter, e.outcome from {batch} cross join lateral (
	select t.task_id, t.waiter, t.outcome from {edges} t where {same key} and t.outcome >= '' order by t.outcome, t.task_id limit :limit) e
where not exists (select 1 from {tasks} k where k.id = s.task_id) limit :limit`)
}

// PendingEdges selects the edges of a member that has not ended, as [EdgeColumns]. It locks the
// edges, so that the member does not end before the transaction. It leaves out the edges of waiters
// that are no longer blocked: a waiter was cancelled, or runs after a death. Parameters: id.
func PendingEdges(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("lock", "")
	if s.Caps.LockRows {
		b.set("lock", " for update")
	}
	return b.stmt(`
select e.task_id, e.waiter, e.outcome from {edges} e
where e.task_id = :id and e.outcome = '' and exists (select 1 from {flows} f where f.task_id = e.waiter){lock}`)
}

// BlockedTasks selects the IDs of those tasks of a batch that are blocked, and locks them.
// Rows that others have locked are left out, where the engine can do that. The batch has
// [IDColumns].
func BlockedTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	if source.byKey() {
		return b.stmt(`
select t.id from {tasks} t where {keys} and t.state = 'blocked'{for update}`)
	}
	return b.stmt(`
select t.id from {batch} join {tasks} t on {same key} and t.state = 'blocked'{for update}`)
}

// OpenWaiters opens tasks of a batch that are blocked. The batch has [IDColumns].
func OpenWaiters(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).endWaiting(size, "state = 'open', updated_at = {greatest t.updated_at, {now}}")
}

// CancelWaiters cancels tasks of a batch that are blocked, with a reason as their error. The batch has
// [IDColumns]. Parameters: reason.
func CancelWaiters(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).endWaiting(size, "state = 'cancelled', updated_at = {now}, last_error = {text :reason}")
}

func (b *builder) endWaiting(size int, set string) Stmt {
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("set", set)
	if source.byKey() {
		return b.stmt(`
update {tasks} as t set {set} where {keys} and t.state = 'blocked'`)
	}
	return b.stmt(`
update {tasks} as t set {set} from {batch} where {same key} and t.state = 'blocked'`)
}

// DropWaiters deletes the waiters of a batch, whose tasks are not blocked any more. The batch
// has [IDColumns].
func DropWaiters(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.set("table", "{flows}")
	return b.stmt(source.delete())
}

// DropEdges deletes edges. The batch has [EdgeKeyColumns].
func DropEdges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(EdgeKeyColumns.columns(), size)
	b.setKeys(source, "task_id", "waiter")
	b.set("table", "{edges}")
	return b.stmt(source.delete())
}
