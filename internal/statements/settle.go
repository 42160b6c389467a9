package statements

import (
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Every statement here ends or extends claims that :worker holds, by id and
// fence. A claim that was lost in the meantime matches nothing, so that nobody
// settles what another worker runs. On engines with Caps.UpdateReturning each
// returns the ids of the rows it matched.

// owned holds a settle to the claims of its worker.
//
// PostgreSQL must not see an equality there: its statistics are of a time when
// nothing was claimed, so that it would take the worker's rows for very few,
// look for them by reading the whole table, and compare each with the batch.
func owned(b *builder) string {
	if b.server.Name() == dialect.Postgres {
		return "coalesce(t.claimed_by = " + b.arg("worker") + ", false)"
	}
	return "t.claimed_by = " + b.arg("worker")
}

// byKey has a statement find the rows of t by the key that a batch is joined
// to it by.
func byKey(s dialect.Server) string {
	if s.Caps.JoinHints {
		return "/*+ inl_join(t) */ "
	}
	return ""
}

// updateRows changes the tasks that a batch names by id and fence. The batch's
// first two columns are [FenceColumns].
func updateRows(s dialect.Server, tables dialect.Tables, room int, cols []Column, set, where func(*builder) string) Stmt {
	b, name := newBuilder(s), tables.Name(s, "tasks")
	match := func(on string) string {
		if where != nil {
			on += " and " + where(b)
		}
		return on
	}
	const joined = "t.id = s.task_id and t.fence = s.task_fence"
	switch {
	case s.Caps.Rows.Grows() && len(cols) == len(FenceColumns):
		b.add("update ", name, " as t set ", set(b), "\nwhere ", match(b.keys(room, "t.id", "t.fence")))
	case s.Caps.Rows == dialect.Unions:
		if s.Name() != dialect.TiDB {
			b.types = name
		}
		b.add("update ", byKey(s), b.rows("s", room, cols...), " straight_join ", name, " t on ", match(joined), "\nset ", set(b))
	case s.Caps.Rows == dialect.Values:
		// SQLite reads a table whole that was small when it was analyzed. Then it
		// must do so once, and not compare each row with the batch: so those that
		// are not in it go first.
		b.add("update ", name, " as t set ", set(b), "\nfrom (select * from ", b.rows("s", room, cols...), " limit -1) as s\nwhere ",
			match(joined+" and +t.id in (select * from "+b.rows("s", room, cols[0])+")"))
	default:
		b.add("update ", name, " as t set ", set(b), "\nfrom ", b.rows("s", room, cols...), "\nwhere ", match(joined))
	}
	if where != nil {
		b.returning("t.id")
	}
	return b.stmt()
}

// keys names rows by the values of columns, of which the batch has those alone.
// For engines without arrays: looking up a list of constants costs them less
// than joining a derived table, and locks in the order of the key.
func (b *builder) keys(room int, columns ...string) string {
	if room == 1 {
		// By a list of one MariaDB's UPDATE reads the whole table, and SQLite one
		// that it takes for small.
		return b.values(1, FenceColumns[:len(columns)], func(v []string) string {
			for i, c := range columns {
				v[i] = c + " = " + v[i]
			}
			return strings.Join(v, " and ")
		})
	}
	list := b.values(room, FenceColumns[:len(columns)], func(v []string) string { return strings.Join(v, ", ") })
	if b.server.Caps.Rows == dialect.Values {
		list = "values " + list
	}
	return "(" + strings.Join(columns, ", ") + ") in (" + list + ")"
}

// deleteRows deletes the rows of a table whose keys stand in a batch.
func deleteRows(b *builder, table string, room int, keys []string, cols []Column, where func(*builder) string) {
	on, columns := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		columns[i] = "t." + key
		on[i] = columns[i] + " = s." + cols[i].Name
	}
	switch b.server.Caps.Rows {
	case dialect.Arrays:
		b.add("delete from ", table, " as t using ", b.rows("s", room, cols...), "\nwhere ", strings.Join(on, " and "), where(b))
	case dialect.Values:
		b.add("delete from ", table, " as t where ", b.keys(room, columns...), where(b))
	case dialect.Unions:
		b.add("delete t from ", table, " t where ", b.keys(room, columns...), where(b))
	}
}

// Delete ends tasks that are done and need not be kept. The batch has
// [FenceColumns]. Parameters: worker.
func Delete(s dialect.Server, tables dialect.Tables, room int) Stmt {
	b := newBuilder(s)
	deleteRows(b, tables.Name(s, "tasks"), room, []string{"id", "fence"}, FenceColumns, func(b *builder) string { return " and " + owned(b) })
	b.returning("t.id")
	return b.stmt()
}

// Finish ends tasks that are done and kept, without a result. The batch has
// [FenceColumns]. Parameters: worker.
func Finish(s dialect.Server, tables dialect.Tables, room int) Stmt {
	return updateRows(s, tables, room, FenceColumns, func(b *builder) string {
		return "state = 'done', claimed_by = '', updated_at = " + b.server.Clock().Now
	}, owned)
}

// SettleColumns are the columns of the batch of [Settle]: the claim, the state
// to go to, what to add to attempts, the microseconds from now to the moment
// the next wait counts from, an error or NULL, a JSON result or NULL.
var SettleColumns = []Column{
	{"task_id", Int}, {"task_fence", Int}, {"to_state", Text}, {"more", Int}, {"wait", Int}, {"failure", Text}, {"answer", Text},
}

// Settle ends claims in any way. The batch has [SettleColumns]. Parameters:
// worker.
func Settle(s dialect.Server, tables dialect.Tables, room int) Stmt {
	return updateRows(s, tables, room, SettleColumns, func(b *builder) string {
		clock, answer := b.server.Clock(), "s.answer"
		if b.server.Name() == dialect.Postgres {
			answer += "::json"
		}
		return "state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = " + clock.Shift(clock.Now, "s.wait") +
			", last_error = coalesce(s.failure, t.last_error), result = " + answer
	}, owned)
}

// Extend moves the end of leases to :lease microseconds from now. The batch
// has [FenceColumns]. Parameters: worker, lease.
func Extend(s dialect.Server, tables dialect.Tables, room int) Stmt {
	return updateRows(s, tables, room, FenceColumns, func(b *builder) string {
		clock := b.server.Clock()
		return "updated_at = " + clock.Shift(clock.Now, b.int("lease"))
	}, owned)
}

// Owned selects the ids of those claims of a batch that :worker still holds.
// Where lock is set and the engine can it locks their rows, and leaves out those
// that somebody else has locked, if it can do that. The batch has
// [FenceColumns]. Parameters: worker.
func Owned(s dialect.Server, tables dialect.Tables, room int, lock bool) Stmt {
	b, name := newBuilder(s), tables.Name(s, "tasks")
	if s.Caps.Rows.Grows() {
		b.add("select t.id from ", name, " t where ", b.keys(room, "t.id", "t.fence"), " and ", owned(b))
	} else {
		b.add("select t.id from ", b.rows("s", room, FenceColumns...), " join ", name, " t on t.id = s.task_id and t.fence = s.task_fence and ", owned(b))
	}
	if lock && s.Caps.LockRows {
		b.add(" for update", skipLocked(s))
	}
	return b.stmt()
}

// RecordColumns are the columns of the batch of [Record].
var RecordColumns = []Column{
	{"task_id", Int}, {"task_fence", Int}, {"attempt", Int}, {"outcome", Text}, {"worker", Text}, {"duration", Int}, {"error", Text}, {"stack", Text},
}

// Record keeps what went wrong in attempts. The batch has [RecordColumns], on
// engines without arrays exactly room rows. An attempt that is recorded already
// stays as it is.
func Record(s dialect.Server, tables dialect.Tables, room int) Stmt {
	b, now := newBuilder(s), s.Clock().Now
	columns := " (task_id, fence, attempt, outcome, worker, duration_us, error, stack, finished_at)"
	if s.Caps.Rows == dialect.Unions {
		b.add("insert ignore into ", tables.Name(s, "attempts"), columns, "\nvalues ", b.values(room, RecordColumns, func(v []string) string {
			return strings.Join(v, ", ") + ", " + now
		}))
		return b.stmt()
	}
	b.add("insert into ", tables.Name(s, "attempts"), columns, " select s.*, ", now, " from ", b.rows("s", room, RecordColumns...), "\nwhere true on conflict do nothing")
	return b.stmt()
}

// Forget drops the recorded attempts of tasks. The batch has one column, the
// task's id.
func Forget(s dialect.Server, tables dialect.Tables, room int) Stmt {
	b := newBuilder(s)
	deleteRows(b, tables.Name(s, "attempts"), room, []string{"task_id"}, FenceColumns[:1], func(*builder) string { return "" })
	return b.stmt()
}

// returning ends an UPDATE or DELETE where the engine can tell what it matched.
func (b *builder) returning(column string) {
	if !b.server.Caps.UpdateReturning {
		return
	}
	if b.server.Name() == dialect.SQLite {
		column = column[len("t."):] // SQLite knows no alias here
	}
	b.add("\nreturning ", column)
}
