package statements

import "github.com/falldue/falldue/dialect"

// ListParams says by what [List] picks tasks: each set field adds a parameter
// of its name in lower case.
type ListParams struct {
	ID, Queue, Kind, State bool
}

// List selects tasks in the order of their ids, from after the id :after on,
// :limit at the most. It returns id, queue, kind, policy, priority, state,
// attempts, max_attempts, fence, and in microseconds since 1970 updated_at,
// created_at, first_attempted_at, attempted_at and the database's now; then
// claimed_by, last_error, payload, result.
func List(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	b, clock := newBuilder(s), s.Clock()
	b.add("select id, queue, kind, policy, priority, state, attempts, max_attempts, fence, ",
		clock.Micros("updated_at"), ", ", clock.Micros("created_at"), ", ", clock.Micros("first_attempted_at"), ", ", clock.Micros("attempted_at"), ", ", clock.Micros(clock.Now),
		", claimed_by, last_error, payload, result from ", tables.Name(s, "tasks"), "\nwhere id > ", b.arg("after"))
	for _, f := range []struct {
		set  bool
		name string
	}{{p.ID, "id"}, {p.Queue, "queue"}, {p.Kind, "kind"}, {p.State, "state"}} {
		if f.set {
			b.add(" and ", f.name, " = ", b.arg(f.name))
		}
	}
	if p.Queue && p.State {
		b.add(b.lanesOf())
	}
	b.add("\norder by id limit ", b.arg("limit"))
	return b.stmt()
}

// Attempts selects what is recorded of one task's attempts, oldest first:
// fence, attempt, outcome, worker, finished_at in microseconds since 1970,
// duration in microseconds, error, stack. Parameters: id.
func Attempts(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("select fence, attempt, outcome, worker, ", s.Clock().Micros("finished_at"), ", duration_us, error, stack from ",
		tables.Name(s, "attempts"), "\nwhere task_id = ", b.arg("id"), "\norder by fence")
	return b.stmt()
}

// Count counts tasks by queue, kind and state.
func Count(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("select queue, kind, state, count(*) from ", tables.Name(s, "tasks"), "\ngroup by queue, kind, state order by queue, kind, state")
	return b.stmt()
}

// Retry opens a dead or cancelled task again, as if it had not been tried.
// Parameters: id.
func Retry(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("update ", tables.Name(s, "tasks"), "\nset state = 'open', attempts = 0, updated_at = ", s.Clock().Now,
		"\nwhere id = ", b.arg("id"), " and state in ('dead', 'cancelled')")
	return b.stmt()
}

// Cancel calls a task off that is not finished. A worker that runs it learns
// of that at its next heartbeat. Parameters: id.
func Cancel(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("update ", tables.Name(s, "tasks"), "\nset state = 'cancelled', claimed_by = '', updated_at = ", s.Clock().Now,
		"\nwhere id = ", b.arg("id"), " and state in ('open', 'snoozed')")
	return b.stmt()
}

// Clean deletes up to :limit tasks of one lane of finished tasks whose time,
// :keep microseconds since they finished, is over. It selects ids; [Forget]
// and [Drop] delete them. Parameters: queue, state, keep, limit.
func Clean(s dialect.Server, tables dialect.Tables) Stmt {
	b, clock := newBuilder(s), s.Clock()
	b.add("select id from ", tables.Name(s, "tasks"), "\nwhere queue = ", b.arg("queue"), " and state = ", b.arg("state"), b.lanesOf(),
		" and updated_at <= ", clock.Shift(clock.Now, "-("+b.int("keep")+")"), " limit ", b.arg("limit"))
	if s.Caps.SkipLocked {
		b.add(" for update", skipLocked(s)) // each cleaner takes others: none waits, and no two wait for each other
	}
	return b.stmt()
}

// Drop deletes finished tasks. The batch has one column, the task's id.
func Drop(s dialect.Server, tables dialect.Tables, room int) Stmt {
	b := newBuilder(s)
	deleteRows(b, tables.Name(s, "tasks"), room, []string{"id"}, FenceColumns[:1], func(*builder) string {
		return " and t.state in ('done', 'dead', 'cancelled')"
	})
	return b.stmt()
}

// CountTables counts the tables called :name, on SQLite, whose errors do not
// tell a missing table from any other mistake by their code.
func CountTables(s dialect.Server) Stmt {
	b := newBuilder(s)
	b.add("select count(*) from sqlite_schema where type = 'table' and name = ", b.arg("name"))
	return b.stmt()
}
