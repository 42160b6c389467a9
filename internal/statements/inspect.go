package statements

import "github.com/falldue/falldue/dialect"

// ListParams says by what [List] picks tasks: each set field adds a parameter
// of its name in lower case.
type ListParams struct {
	ID, Queue, Kind, State bool
}

// List selects tasks in the order of their ids, up to :limit after the id
// :after, and returns them as [TaskColumns].
func List(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	b := newBuilder(s, tables)
	b.set("task", TaskColumns.list("", map[string]string{"now": "{now}", "claimed_by": "coalesce(rtrim(claimed_by), '')"}))
	b.set("in state", "")
	if p.Queue && p.State {
		b.setInState()
	}
	filter := ""
	for _, f := range []struct {
		set       bool
		condition string
	}{{p.ID, " and id = :id"}, {p.Queue, " and queue = :queue"}, {p.Kind, " and kind = :kind"}, {p.State, " and state = :state"}} {
		if f.set {
			filter += f.condition
		}
	}
	b.set("filter", filter)
	return b.stmt(`
select {task} from {tasks}
where id > :after{filter}{in state}
order by id limit :limit`)
}

// Attempts selects the recorded attempts of a task, oldest first, and returns
// them as [AttemptColumns]. Parameters: id.
func Attempts(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("attempt", AttemptColumns.list("", nil))
	return b.stmt(`
select {attempt} from {attempts}
where task_id = :id
order by fence`)
}

// CountTasks counts tasks by queue, kind and state. It returns [CountColumns].
func CountTasks(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("counted", CountColumns.list("", map[string]string{"tasks": "count(*)"}))
	return b.stmt(`
select {counted} from {tasks}
group by queue, kind, state order by queue, kind, state`)
}

// Retry opens a dead or cancelled task again, as if it had not been tried. If notify
// is set, it sends the task's queue to the channel :channel, on servers with
// Caps.Notify. Parameters: id, and channel where it notifies.
func Retry(s dialect.Server, tables dialect.Tables, notify bool) Stmt {
	b := newBuilder(s, tables)
	b.set("notify", "")
	if notify && s.Caps.Notify {
		b.set("notify", "\nreturning pg_notify(:channel, queue)")
	}
	return b.stmt(`
update {tasks}
set state = 'open', attempts = 0, updated_at = {now}
where id = :id and state in ('dead', 'cancelled'){notify}`)
}

// Cancel cancels a task that is not finished. It leaves the claim to [NoteCancel] and
// [EndClaim]. Parameters: id.
func Cancel(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks}
set state = 'cancelled', updated_at = {now}
where id = :id and state in ('open', 'snoozed')`)
}

// Drop deletes finished tasks. The batch has [IDColumns].
func Drop(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("table", "{tasks}")
	return b.stmt(source.delete() + " and t.state in ('done', 'dead', 'cancelled')")
}

// CountTables counts the tables called :name. It is for servers with
// Caps.AmbiguousMissingTable.
func CountTables(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select count(*) from sqlite_schema where type = 'table' and name = :name`)
}
