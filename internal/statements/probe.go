package statements

import "github.com/falldue/falldue/dialect"

// An idle worker finds the tasks of other processes by their IDs, which are greater than
// the IDs of earlier tasks. A statement that finds nothing is one look-up in the primary
// key. A task that is committed after a task with a greater ID may be missed. The next
// sweep finds it.

// NewTask is a task that has been stored recently.
type NewTask struct {
	ID    int64
	Queue string
	Head
}

// NewTaskColumns are the columns of a result of [NewTasks].
var NewTaskColumns = join(
	Columns[NewTask]{
		col("id", Int, func(n *NewTask) any { return &n.ID }),
		col("queue", Text, func(n *NewTask) any { return &n.Queue }),
	},
	within(HeadColumns, func(n *NewTask) *Head { return &n.Head }))

// News selects the greatest ID of a task, or 0, and the sum of the IDs of the changes of
// the last :back microseconds, or 0. A probe for tasks and for changes is two index look-ups.
func News(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("sum", s.Cast("sum(id)", Int.cast())) // else it is a decimal
	return b.stmt(`
select coalesce((select id from {tasks} order by id desc limit 1), 0) as task,
coalesce((select {sum} from {changes} where created_at > {shift {now}, -({int :back})}), 0) as changes`)
}

// NewTasks selects up to :limit tasks in the order of their IDs, from the one after the
// ID :after on, and returns them as [NewTaskColumns].
func NewTasks(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("new", NewTaskColumns.list("", map[string]string{"anchor": "updated_at", "clock": "{now}"}))
	return b.stmt(`
select {new} from {tasks}
where id > :after
order by id limit :limit`)
}
