package statements

import (
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// EnqueueColumns are the columns of the batch of [Enqueue]: delay is in
// microseconds from now, at a moment in microseconds since 1970 that, where it
// is not NULL, counts instead.
var EnqueueColumns = []Column{
	{"queue", Text}, {"kind", Text}, {"policy", Text}, {"priority", Int}, {"max_attempts", Int}, {"at", Int}, {"delay", Int}, {"payload", Text},
}

// PlainColumns are those of the batch where [EnqueueParams] is plain.
var PlainColumns = []Column{EnqueueColumns[0], EnqueueColumns[1], EnqueueColumns[7]}

// EnqueueParams says how tasks are inserted.
type EnqueueParams struct {
	Tables dialect.Tables
	// Plain is for tasks that are due now, with all else as the table has it by
	// default. MySQL and MariaDB spend much on reckoning when each task is due.
	Plain bool
	// Notify sends to the channel :channel when the transaction commits, on
	// engines with Caps.Notify.
	Notify bool
}

// columns are those of the batch.
func (p EnqueueParams) columns() []Column {
	if p.Plain {
		return PlainColumns
	}
	return EnqueueColumns
}

// insert begins to insert tasks, and returns what makes the values of a row of
// those of the batch's columns.
func (b *builder) insert(p EnqueueParams) (row func(v []string) string) {
	clock := b.server.Clock()
	b.add("insert into ", p.Tables.Name(b.server, "tasks"))
	if p.Plain {
		b.add(" (queue, kind, updated_at, created_at, payload)")
		return func(v []string) string {
			return strings.Join([]string{v[0], v[1], clock.Now, clock.Now, v[2]}, ", ")
		}
	}
	b.add(" (queue, kind, policy, priority, max_attempts, updated_at, created_at, payload)")
	return func(v []string) string {
		anchor := "coalesce(" + clock.Moment(v[5]) + ", " + clock.Shift(clock.Now, v[6]) + ")"
		return strings.Join(append(slices.Clone(v[:5]), anchor, clock.Now, v[7]), ", ")
	}
}

// Enqueue inserts tasks. The batch has [EnqueueColumns], or [PlainColumns]. On
// engines with Caps.InsertReturning it returns their ids, which ascend in the
// order of the batch; on the others the driver tells the first, and the rest
// follow in steps of Caps.IDStep. Where statements grow with their batch it must
// have exactly room rows.
// Parameters: channel, where it notifies.
func Enqueue(s dialect.Server, p EnqueueParams, room int) Stmt {
	b, columns := newBuilder(s), p.columns()
	row := b.insert(p)
	if s.Caps.Rows == dialect.Unions {
		b.add("\nvalues ", b.values(room, columns, row))
	} else {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.Name
		}
		b.add(" select ", row(b.withPayload(names)), "\nfrom ", b.rows("s", room, columns...), "\nwhere true")
	}
	b.returningIDs(p)
	return b.stmt()
}

// withPayload makes the last of the values what the column of payloads takes.
func (b *builder) withPayload(v []string) []string {
	if b.server.Name() == dialect.Postgres {
		v[len(v)-1] += "::json"
	}
	return v
}

// EnqueueAlike is [Enqueue] for tasks that differ in nothing but their payload,
// which is all that the batch has. For engines where a row of a batch is no row
// of VALUES: there each repeats what it has in common with the others.
// Parameters: the other names of [EnqueueColumns], or of [PlainColumns], and
// channel where it notifies.
func EnqueueAlike(s dialect.Server, p EnqueueParams, room int) Stmt {
	b, columns := newBuilder(s), p.columns()
	row := b.insert(p)
	common, payload := columns[:len(columns)-1], columns[len(columns)-1]
	values := make([]string, 0, len(columns))
	for _, c := range common {
		values = append(values, b.typed(c))
	}
	b.add(" select ", row(b.withPayload(append(values, payload.Name))), "\nfrom ", b.rows("s", room, payload), "\nwhere true")
	b.returningIDs(p)
	return b.stmt()
}

// EnqueueOne inserts one task, as [Enqueue] does, for the price of one.
// Parameters: the names of [EnqueueColumns], or of [PlainColumns], and channel
// where it notifies.
func EnqueueOne(s dialect.Server, p EnqueueParams) Stmt {
	b, columns := newBuilder(s), p.columns()
	row := b.insert(p)
	values := make([]string, len(columns))
	for i, c := range columns {
		value := b.arg // the table tells its type
		if c.Name == "at" || c.Name == "delay" {
			value = b.int
		}
		values[i] = value(c.Name)
	}
	b.add(" values (", row(values), ")")
	b.returningIDs(p)
	return b.stmt()
}

// CopyIDs selects the ids of :rows tasks that [Copy] will store, ascending, and
// with each the database's now in microseconds since 1970. Parameters: table, rows,
// where table is the name that [dialect.Tables.Name] writes.
func CopyIDs(s dialect.Server) Stmt {
	b, clock := newBuilder(s), s.Clock()
	b.add("select nextval((select pg_get_serial_sequence(", b.arg("table"), ", 'id')::regclass)), (select ", clock.Micros(clock.Now), ")",
		"\nfrom generate_series(1, ", b.int("rows"), ")")
	return b.stmt()
}

// Copy takes tasks as a stream, on engines with Caps.Copy: their ids, then
// [EnqueueColumns], the moment that the wait counts from in place of delay and at.
// Where all are plain, that is due now and with all else as the table has it by
// default, it takes their ids, queue, kind and payload, and reads half as much.
func Copy(s dialect.Server, tables dialect.Tables, plain bool) Stmt {
	b := newBuilder(s)
	columns := "policy, priority, max_attempts, updated_at, "
	if plain {
		columns = ""
	}
	b.add("copy ", tables.Name(s, "tasks"), " (id, queue, kind, ", columns, "payload) from stdin")
	return b.stmt()
}

// Notify tells the listeners of a channel, on engines with Caps.Notify.
// Parameters: channel.
func Notify(s dialect.Server) Stmt {
	b := newBuilder(s)
	b.add("select pg_notify(", b.arg("channel"), ", '')")
	return b.stmt()
}

// returningIDs ends an INSERT where the engine can tell the ids. The notice is
// sent once a statement, however many rows it has: the subquery depends on none.
func (b *builder) returningIDs(p EnqueueParams) {
	if !b.server.Caps.InsertReturning {
		return
	}
	b.add("\nreturning id")
	if p.Notify && b.server.Caps.Notify {
		b.add(", (select pg_notify(", b.arg("channel"), ", ''))")
	}
}

// PutPolicy stores a policy's text under its key, unless it is there.
// Parameters: key, policy.
func PutPolicy(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	key := s.Quote("key")
	b.add("insert into ", tables.Name(s, "policies"), " (", key, ", policy, created_at) values (", b.arg("key"), ", ", b.arg("policy"), ", ", s.Clock().Now, ")")
	if s.Caps.Rows == dialect.Unions {
		b.add(" on duplicate key update created_at = created_at")
	} else {
		b.add(" on conflict do nothing")
	}
	return b.stmt()
}

// Policy selects the text of a policy. Parameters: key.
func Policy(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("select policy from ", tables.Name(s, "policies"), "\nwhere ", s.Quote("key"), " = ", b.arg("key"))
	return b.stmt()
}

// samples is the batch of [Check].
var samples = Column{"n", Int}

// Check asks the server for the delays of formulas, in microseconds, after each
// of the attempts of a batch of one column: a row an attempt, the formulas in
// their order. A worker compares them with its own before it starts.
func Check(s dialect.Server, formulas []sqlgen.Formula, room int) Stmt {
	b := newBuilder(s)
	b.add("select s.n")
	for i, f := range formulas {
		b.add(", ", f.MicrosSQL(s, "s.n"), " as f", strconv.Itoa(i))
	}
	b.add("\nfrom ", b.rows("s", room, samples), "\norder by s.n")
	return b.stmt()
}
