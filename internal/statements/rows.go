package statements

import (
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// rowSource is how a batch of rows enters a statement. [builder.withBatch],
// [builder.setKeys] and the functions in settle.go set the holes in its templates.
type rowSource interface {
	// from is the batch as FROM takes it, under an alias and with its columns
	// named.
	from(b *builder, alias string, columns []column) string
	// inValues reports whether the rows of a batch can be rows of VALUES in an
	// INSERT.
	inValues() bool
	// byKey reports whether a batch of nothing but keys is better looked up as a
	// list of constants, {keys}, than joined.
	byKey() bool
	// keys returns a list of constants in the form that the engine takes.
	keys(list string) string
	// update changes the tasks t that the batch s names.
	update() string
	// delete deletes the rows t of {table} that the batch s names.
	delete() string
}

// sourceOf returns how batches enter the statements of a server.
func sourceOf(s dialect.Server) rowSource {
	switch s.Caps.Rows {
	case dialect.Arrays:
		return arrays{}
	case dialect.Unions:
		return unions{}
	case dialect.ValueLists:
		return valueLists{}
	}
	panic("statements: Caps of " + string(s.Name()) + " say nothing of Rows")
}

// withBatch gives the statement a batch of rows, at most size where the statement
// grows with its batch.
func (b *builder) withBatch(columns []column, size int) rowSource {
	source := sourceOf(b.server)
	b.batch = columns
	if b.server.Caps.Rows.Grows() {
		b.size = size
	}
	b.set("batch", func() string { return source.from(b, "s", columns) })
	return source
}

// cell returns the parameter of one value of the batch.
func (b *builder) cell(row, column int) string {
	c := b.batch[column]
	return b.typed(b.push(param{name: c.Name, kind: cell, typ: c.Type, col: column, row: row}), c.Type)
}

// values returns the rows of VALUES, where row makes each row of its cells. The
// batch must have exactly as many rows as the statement was made for.
func (b *builder) values(columns []column, row func(cells []string) string) string {
	rows := make([]string, b.size)
	for r := range rows {
		cells := make([]string, len(columns))
		for c := range columns {
			cells[c] = b.cell(r, c)
		}
		rows[r] = "(" + row(cells) + ")"
	}
	return strings.Join(rows, ", ")
}

// jsonTable is a batch of names and numbers as one parameter, with a column place, which counts the rows from 1.
func (b *builder) jsonTable(alias string, columns []column) string {
	b.batch = columns
	text := "json_table(" + b.push(param{kind: wholeBatch}) + ", '$[*]' columns (place for ordinality"
	for i, c := range columns {
		typ := "bigint"
		if c.Type == Text {
			typ = "varchar(128) character set ascii collate ascii_bin" // as the columns of tasks, whose index serves no other collation
		}
		text += ", " + c.Name + " " + typ + " path '$[" + strconv.Itoa(i) + "]'"
	}
	return text + ")) as " + alias
}

// united makes a statement that unites a part for each row of a batch of size rows. In the template of a part, {of NAME}
// is a value of the row, {place} is the row's number, from 0, and {in its lane} is the condition that a task is in the
// lane of the row, if the batch has [QueueLaneColumns].
func (b *builder) united(columns []column, size int, part string) Stmt {
	b.unite(columns, size, part)
	return b.stmt("\n{parts}")
}

// unite sets the fragment {parts} of [builder.united].
func (b *builder) unite(columns []column, size int, part string) {
	b.batch, b.size = columns, size
	of := func(c column) string { return "{of " + c.Name + "}" }
	b.set("in its lane", list(QueueLaneColumns.columns(), " and ", func(c column) string { return c.Name + " = " + of(c) }))
	if b.server.Caps.LaneExpression {
		b.set("in its lane", "{lane text} = "+laneText("{of queue}", of))
	}
	b.set("parts", func() string {
		parts := make([]string, size)
		for i := range parts {
			b.set("place", verbatim(strconv.Itoa(i)))
			b.set("of", func(name string) string {
				return b.cell(i, slices.IndexFunc(columns, func(c column) bool { return c.Name == name }))
			})
			parts[i] = b.expand(part)
		}
		return strings.Join(parts, "\nunion all ")
	})
}

func commas(list []string) string { return strings.Join(list, ", ") }

// arrays: unnest((select $1::bigint[]), (select $2::text[])) as s (task_id, error). The arrays are subqueries, so that
// the planner does not see their lengths. Otherwise a plan for known values may look cheaper than a plan for all
// values, and PostgreSQL plans each execution anew.
type arrays struct{}

func (arrays) from(b *builder, alias string, columns []column) string {
	names := list(columns, ", ", func(c column) string { return c.Name })
	rows := unnest(b, columns) + " as " + alias + " (" + names + ")"
	if !slices.ContainsFunc(columns, func(c column) bool { return c.Null }) {
		return rows
	}
	values := list(columns, ", ", func(c column) string {
		switch {
		case !c.Null:
			return c.Name
		case c.Type == Text:
			return "nullif(" + c.Name + ", E'\\x01'::text) as " + c.Name
		}
		return "nullif(" + c.Name + ", '" + nullElement(c.Type) + "'::bigint) as " + c.Name
	})
	return "(select " + values + " from " + rows + ") as " + alias
}

// numbered is a batch of lanes l with a column place, which counts the rows from 1.
func (arrays) numbered(b *builder, columns []column) string {
	names := list(columns, ", ", func(c column) string { return c.Name })
	return unnest(b, columns) + " with ordinality as l (" + names + ", place)"
}

func unnest(b *builder, columns []column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		array := b.push(param{name: c.Name, kind: wholeColumn, typ: c.Type, col: i})
		parts[i] = "(select " + b.server.Cast(array, c.Type.cast()) + "[])"
	}
	if len(parts) == 1 { // by its full name: PostgreSQL would prefer a user's unnest that takes exactly this type
		return "pg_catalog.unnest(" + parts[0] + ")"
	}
	return "unnest(" + commas(parts) + ")" // which is syntax, and always PostgreSQL's own
}

func (arrays) inValues() bool     { return false }
func (arrays) byKey() bool        { return false }
func (arrays) keys(string) string { panic("statements: a list of keys on an engine with arrays") }

func (arrays) update() string {
	return `
update {tasks} as t set {set}
from {batch}
where {same key}{and owned}`
}

func (arrays) delete() string {
	return `
delete from {table} as t using {batch}
where {same key}`
}

// unions: (select cast(? as signed) as task_id union all select cast(? as signed)) as s.
type unions struct{}

func (unions) from(b *builder, alias string, columns []column) string {
	return "(" + selects(b, columns, true) + ") as " + alias
}

// wide is from for engines whose narrow unions would cut off long values: the columns
// have the types of a task's fence and payload.
func (u unions) wide(b *builder, alias string, columns []column) string {
	if !b.server.Caps.NarrowUnions {
		return u.from(b, alias, columns)
	}
	types := list(columns, ", ", func(c column) string {
		if c.Type == Int {
			return "fence as " + c.Name
		}
		return "payload as " + c.Name
	})
	rows := selects(b, columns, false)
	if b.server.Caps.UnionValues {
		rows = "values " + b.values(columns, commas)
	}
	return "(select " + types + " from " + b.hole("tasks") + " where false union all " + rows + ") as " + alias
}

// selects returns a SELECT for each row. The first one names the columns if named is set.
func selects(b *builder, columns []column, named bool) string {
	rows := make([]string, b.size)
	for r := range rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = b.server.Cast(b.cell(r, i), c.Type.cast())
			if r == 0 && named {
				cells[i] += " as " + c.Name
			}
		}
		rows[r] = "select " + commas(cells)
	}
	return strings.Join(rows, " union all ")
}

func (unions) inValues() bool          { return true }
func (unions) byKey() bool             { return true }
func (unions) keys(list string) string { return "(" + list + ")" }

func (unions) update() string {
	return `
update {hint}{wide batch} straight_join {tasks} t on {same key}{and owned}
set {set}`
}

func (unions) delete() string {
	return `
delete t from {table} t where {keys}`
}

// valueLists: (select column1 as task_id from (values (?), (?))) as s.
type valueLists struct{}

func (valueLists) from(b *builder, alias string, columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = "column" + strconv.Itoa(i+1) + " as " + c.Name
	}
	return "(select " + commas(names) + " from (values " + b.values(columns, commas) + ")) as " + alias
}

func (valueLists) inValues() bool          { return false }
func (valueLists) byKey() bool             { return true }
func (valueLists) keys(list string) string { return "(values " + list + ")" }

// update is for tables that were small when SQLite analyzed them: SQLite reads all of
// such a table. With this statement, SQLite reads the table only once, and does not compare each row
// with the batch: rows that are not in the batch are dropped first.
func (valueLists) update() string {
	return `
update {tasks} as t set {set}
from (select * from {batch} limit -1) as s
where {same key} and +t.id in (select * from {batch of ids}){and owned}`
}

func (valueLists) delete() string {
	return `
delete from {table} as t where {keys}`
}

// setKeys sets the fragments that select the batch's rows of t: {keys} for a list of
// constants and {same key} for a join. key names columns of t, one for each of the
// first columns of the batch.
//
// Engines without arrays look up a list of constants at less cost than they join a
// derived table, and lock in the order of the key. With a list of one row MariaDB's
// UPDATE would read the whole table, and so would SQLite where it takes the table
// for small.
func (b *builder) setKeys(source rowSource, key ...string) {
	joined := make([]string, len(key))
	for i, column := range key {
		joined[i] = "t." + column + " = s." + b.batch[i].Name
	}
	b.set("same key", strings.Join(joined, " and "))
	b.set("keys", func() string {
		columns := b.batch[:len(key)]
		if b.size == 1 {
			return b.values(columns, func(cells []string) string {
				for i := range cells {
					cells[i] = "t." + key[i] + " = " + cells[i]
				}
				return strings.Join(cells, " and ")
			})
		}
		return "(t." + strings.Join(key, ", t.") + ") in " + source.keys(b.values(columns, commas))
	})
}
