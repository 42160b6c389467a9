package statements

import (
	"strconv"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// EnqueueParams decide how tasks are inserted.
type EnqueueParams struct {
	Tables dialect.Tables
	// Plain is for tasks that are due now and have the table's defaults for all
	// else. Computing when each task is due costs MySQL and MariaDB much.
	Plain bool
	// Unique is for tasks with a unique key.
	Unique bool
	// Metadata is for a batch in which some tasks have metadata.
	Metadata bool
	// Notify sends :notice to the channel :channel when the transaction commits,
	// on servers with Caps.Notify.
	Notify bool
}

// Columns returns the columns of the batch: [EnqueueColumns], [UniqueColumns] or
// [PlainColumns], and metadata.
func (p EnqueueParams) Columns() Columns[Entry] {
	columns, and := EnqueueColumns, enqueueMetadataColumns
	switch {
	case p.Unique:
		columns, and = UniqueColumns, uniqueMetadataColumns
	case p.Plain:
		columns, and = PlainColumns, plainMetadataColumns
	}
	if p.Metadata {
		return and
	}
	return columns
}

// insert returns a builder that knows the fragments of an INSERT of tasks:
// {columns}, {returning} and {row}, a row of the columns. The row is made of the values
// of the batch's columns: {at value}, for example, is the value of column at.
func insert(s dialect.Server, p EnqueueParams) *builder {
	b := newBuilder(s, p.Tables)
	var columns, values []string
	for _, c := range p.Columns() {
		switch c.Name {
		case "at", "delay": // together they are updated_at
		case "payload":
			columns = append(columns, "updated_at", "created_at", c.Name)
			values = append(values, "{anchor}", "{now}", "{payload value}")
		default:
			columns = append(columns, c.Name)
			values = append(values, "{"+c.Name+" value}")
		}
	}
	b.set("columns", commas(columns))
	b.set("row", commas(values))
	b.set("anchor", "coalesce({moment {at value}}, {shift {now}, {delay value}})")
	if p.Plain {
		b.set("anchor", "{now}")
	}
	b.set("returning", "")
	if s.Caps.InsertReturning {
		b.set("returning", "\nreturning id")
		if p.Notify && s.Caps.Notify {
			// The subquery depends on no row, so that it runs once for all of them.
			b.set("returning", "\nreturning id, (select pg_notify(:channel, :notice))")
		}
	}
	return b
}

// setValues sets the value of each column of a row.
func (b *builder) setValues(columns []column, value func(column) any) {
	for _, c := range columns {
		b.set(c.Name+" value", value(c))
	}
}

// setDocuments sets the values of columns that are documents in the database, and texts in
// the batch.
func (b *builder) setDocuments(prefix string) {
	for _, name := range []string{"payload", "metadata"} {
		b.set(name+" value", "{json "+prefix+name+"}")
	}
}

// Enqueue inserts tasks. The batch has the columns of p. Where statements grow with
// their batch, the batch must have exactly size rows. On servers with Caps.InsertReturning
// Enqueue returns the IDs of the tasks, which ascend in the order of the batch. On the
// others the driver reports the first ID, and the rest follow in steps of Caps.IDStep.
// Parameters: channel and notice, where it notifies.
func Enqueue(s dialect.Server, p EnqueueParams, size int) Stmt {
	b, columns := insert(s, p), p.Columns().columns()
	source := b.withBatch(columns, size)
	if source.inValues() {
		b.set("rows", func() string {
			return b.values(columns, func(cells []string) string {
				for i, c := range columns {
					b.set(c.Name+" value", verbatim(cells[i]))
				}
				return b.hole("row")
			})
		})
		return b.stmt(`
insert into {tasks} ({columns})
values {rows}{returning}`)
	}
	b.setValues(columns, func(c column) any { return c.Name })
	b.setDocuments("")
	return b.stmt(`
insert into {tasks} ({columns}) select {row}
from {batch}
where true{returning}`)
}

// HasEnqueueAlike reports whether [EnqueueAlike] is for a server.
func HasEnqueueAlike(s dialect.Server) bool { return s.Caps.Rows != dialect.Unions }

// EnqueueAlike is [Enqueue] for tasks that differ only in their payload: the batch has
// [PayloadColumns]. It is not for servers whose batches are rows of VALUES, where each
// row would have to repeat the common values. Parameters: the other names of
// [EnqueueColumns], or of [PlainColumns], and channel and notice where it notifies.
func EnqueueAlike(s dialect.Server, p EnqueueParams, size int) Stmt {
	b := insert(s, p)
	b.withBatch(PayloadColumns.columns(), size)
	b.setValues(p.Columns().columns(), func(c column) any { return func() string { return b.typed(b.param(c.Name), c.Type) } })
	b.set("payload value", "{json payload}")
	b.set("metadata value", "{json {text :metadata}}")
	return b.stmt(`
insert into {tasks} ({columns}) select {row}
from {batch}
where true{returning}`)
}

// EnqueueOne inserts one task, as [Enqueue] does, but without the cost of a batch.
// Parameters: the names of [EnqueueColumns], or of [PlainColumns], and channel
// where it notifies.
func EnqueueOne(s dialect.Server, p EnqueueParams) Stmt {
	b := insert(s, p)
	b.setValues(p.Columns().columns(), func(c column) any {
		if c.Name == "at" || c.Name == "delay" {
			return "{int :" + c.Name + "}"
		}
		return ":" + c.Name // of the type of the table's column
	})
	return b.stmt(`
insert into {tasks} ({columns}) values ({row}){returning}`)
}

// Notify sends :notice to the channel :channel, on servers with Caps.Notify.
func Notify(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select pg_notify(:channel, :notice)`)
}

// PutPolicy stores a policy's text under its key, unless it is there.
// Parameters: key, policy.
func PutPolicy(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("unless there", "on conflict do nothing")
	case dialect.OnDuplicateKey:
		b.set("unless there", "on duplicate key update created_at = created_at")
	}
	return b.stmt(`
insert into {policies} ({quote key}, policy, created_at) values (:key, :policy, {now}) {unless there}`)
}

// Policies selects the policies of a batch of keys that are stored: keys and texts.
// The batch has [KeyColumns].
func Policies(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(KeyColumns.columns(), size)
	b.setKeys(source, "key")
	if source.byKey() {
		return b.stmt(`
select t.key, t.policy from {policies} t where {keys}`)
	}
	return b.stmt(`
select t.key, t.policy from {batch} join {policies} t on {same key}`)
}

// attemptsSample is the batch of [Check].
var attemptsSample = []column{{Name: "n", Type: Int}}

// Check asks the server for the delays of formulas, in microseconds, after each
// of the attempts of a batch of one column. It returns a row for each of them,
// with the attempts and then the delays in the order of the formulas. A worker
// compares the delays with its own before it starts.
func Check(s dialect.Server, formulas []sqlgen.Formula, size int) Stmt {
	b := newBuilder(s, dialect.Tables{})
	b.withBatch(attemptsSample, size)
	b.set("delays", func() (text string) {
		for i, f := range formulas {
			text += ", " + f.MicrosSQL(s, "s.n") + " as f" + strconv.Itoa(i)
		}
		return text
	})
	return b.stmt(`
select s.n{delays}
from {batch}
order by s.n`)
}
