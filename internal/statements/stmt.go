package statements

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// Stmt is a statement and the names of its parameters in the order in which
// it prints them. It is made once and run often: [Stmt.Bind] turns named
// values into the arguments of a run.
type Stmt struct {
	// SQL is the text, with the engine's own placeholders.
	SQL    string
	params []param
	slots  int // rows that it has room for, where it grows with them
}

// param is one placeholder: a value by its name, or of the batch a whole
// column or one cell.
type param struct {
	name string
	kind paramKind
	typ  ColumnType
	col  int
	row  int
}

type paramKind int

const (
	scalar paramKind = iota
	wholeColumn
	cell
)

// Column is a column of a batch of rows that enters a statement.
type Column struct {
	Name string
	Type ColumnType
}

// ColumnType is the type of a batch's column.
type ColumnType int

// The types a batch needs.
const (
	Int ColumnType = iota
	Text
)

// Row is one row of a batch, its values in the order of the columns: int64,
// string or nil.
type Row []any

// Values are the arguments of one run of a statement.
type Values map[string]any

// Bind orders the arguments of one run. rows is the batch of a statement that
// takes one, and nil for the others. It panics when a value is missing or the
// batch is larger than what the statement was made for: both are mistakes in
// the calling code, not in data.
func (s Stmt) Bind(values Values, rows []Row) []any {
	if s.slots > 0 && len(rows) > s.slots {
		panic(fmt.Sprintf("statements: %d rows for a statement with room for %d", len(rows), s.slots))
	}
	args := make([]any, len(s.params))
	for i, p := range s.params {
		switch p.kind {
		case scalar:
			v, ok := values[p.name]
			if !ok {
				panic(fmt.Sprintf("statements: no value for parameter %q of %s", p.name, s.SQL))
			}
			args[i] = v
		case wholeColumn:
			args[i] = arrayText(rows, p.col)
		case cell:
			switch {
			case p.row < len(rows):
				args[i] = rows[p.row][p.col]
			case p.typ == Int: // an empty slot: no row has the id 0
				args[i] = int64(0)
			}
		}
	}
	return args
}

// arrayText writes column i of rows as a PostgreSQL array literal, which every
// driver passes on as it is.
func arrayText(rows []Row, i int) string {
	size := 2
	for _, row := range rows {
		size += 8
		if text, ok := row[i].(string); ok {
			size += len(text) + len(text)/8 // some of it is escaped
		}
	}
	var array strings.Builder
	array.Grow(size)
	array.WriteByte('{')
	var digits [20]byte
	for r, row := range rows {
		if r > 0 {
			array.WriteByte(',')
		}
		switch v := row[i].(type) {
		case nil:
			array.WriteString("NULL")
		case int64:
			array.Write(strconv.AppendInt(digits[:0], v, 10))
		case string:
			writeQuoted(&array, v)
		default:
			panic(fmt.Sprintf("statements: a batch holds %T; allowed are int64, string and nil", v))
		}
	}
	array.WriteByte('}')
	return array.String()
}

// writeQuoted writes an element of an array literal.
func writeQuoted(array *strings.Builder, text string) {
	array.WriteByte('"')
	plain := 0
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			array.WriteString(text[plain:i])
			array.WriteByte('\\')
			plain = i
		}
	}
	array.WriteString(text[plain:])
	array.WriteByte('"')
}

// builder writes one statement. The parameters are numbered here and nowhere
// else.
type builder struct {
	server dialect.Server
	text   strings.Builder
	params []param
	slots  int
	// types is the table whose payload has the type that texts of a batch get, and
	// whose fence that of numbers. MySQL and MariaDB decide by the first ones that
	// they see how long those of a UNION may be.
	types string
}

func newBuilder(s dialect.Server) *builder { return &builder{server: s} }

// add writes pieces of SQL, one after the other.
func (b *builder) add(parts ...string) {
	for _, p := range parts {
		b.text.WriteString(p)
	}
}

// arg registers a named parameter and returns what stands for it in the text.
func (b *builder) arg(name string) string {
	for i, p := range b.params {
		if p.kind == scalar && p.name == name {
			return markOf(i)
		}
	}
	return b.push(param{name: name, kind: scalar})
}

// int is arg for a whole number in a place where PostgreSQL would guess
// another type.
func (b *builder) int(name string) string {
	if b.server.Name() == dialect.Postgres {
		return b.arg(name) + "::bigint"
	}
	return b.arg(name)
}

// typed is arg for a value of the type that a column of a batch has.
func (b *builder) typed(c Column) string {
	if c.Type == Text && b.server.Name() == dialect.Postgres {
		return b.arg(c.Name) + "::text"
	}
	return b.int(c.Name)
}

func (b *builder) push(p param) string {
	b.params = append(b.params, p)
	return markOf(len(b.params) - 1)
}

// mark encloses the index of a parameter until the text is complete: only then
// is it known in which order the parameters stand in it.
const mark = "\x00"

func markOf(i int) string { return mark + strconv.Itoa(i) + mark }

// rows returns a batch of rows as something FROM takes under the given alias,
// its columns named. room is how many rows a run may bring at the most, where
// the engine has to know.
func (b *builder) rows(alias string, room int, cols ...Column) string {
	var out strings.Builder
	switch b.server.Caps.Rows {
	case dialect.Arrays:
		out.WriteString("unnest(")
		names := make([]string, len(cols))
		for i, c := range cols {
			if i > 0 {
				out.WriteString(", ")
			}
			typ := "::bigint[]"
			if c.Type == Text {
				typ = "::text[]"
			}
			out.WriteString(b.push(param{name: c.Name, kind: wholeColumn, col: i}) + typ)
			names[i] = c.Name
		}
		out.WriteString(") as " + alias + " (" + strings.Join(names, ", ") + ")")
	case dialect.Unions:
		b.slots = room
		out.WriteString("(")
		named := b.types != ""
		if named {
			list := make([]string, len(cols))
			for i, c := range cols {
				list[i] = "fence as " + c.Name
				if c.Type == Text {
					list[i] = "payload as " + c.Name
				}
			}
			out.WriteString("select " + strings.Join(list, ", ") + " from " + b.types + " where false union all ")
		}
		if named && b.server.Name() == dialect.MariaDB { // costs it less
			return out.String() + "values " + b.values(room, cols, func(v []string) string { return strings.Join(v, ", ") }) + ") as " + alias
		}
		for r := range room {
			if r > 0 {
				out.WriteString(" union all ")
			}
			out.WriteString("select ")
			for i, c := range cols {
				if i > 0 {
					out.WriteString(", ")
				}
				typ := "signed"
				if c.Type == Text {
					typ = "char"
				}
				out.WriteString("cast(" + b.push(param{name: c.Name, kind: cell, typ: c.Type, col: i, row: r}) + " as " + typ + ")")
				if r == 0 && !named {
					out.WriteString(" as " + c.Name)
				}
			}
		}
		out.WriteString(") as " + alias)
	case dialect.Values:
		names := make([]string, len(cols))
		for i, c := range cols {
			names[i] = "column" + strconv.Itoa(i+1) + " as " + c.Name
		}
		out.WriteString("(select " + strings.Join(names, ", ") + " from (values ")
		out.WriteString(b.values(room, cols, func(v []string) string { return strings.Join(v, ", ") }) + ")) as " + alias)
	}
	return out.String()
}

// values returns the batch as the rows of VALUES, each as row writes it of its
// columns' values in their order. The batch must have exactly room rows.
func (b *builder) values(room int, cols []Column, row func(values []string) string) string {
	b.slots = room
	rows := make([]string, room)
	for r := range rows {
		values := make([]string, len(cols))
		for i, c := range cols {
			values[i] = b.push(param{name: c.Name, kind: cell, typ: c.Type, col: i, row: r})
		}
		rows[r] = "(" + row(values) + ")"
	}
	return strings.Join(rows, ", ")
}

// wait writes the whole microseconds that f makes a task wait after attempts,
// an SQL expression or, where it starts with ":", a parameter's name.
func (b *builder) wait(f sqlgen.Formula, attempts string) string {
	if name, isParam := strings.CutPrefix(attempts, ":"); isParam {
		attempts = b.arg(name)
	}
	return f.MicrosSQL(b.server, attempts)
}

// numberedRows is rows with a column place, counted from 1 in the order of the
// batch; for engines with array parameters.
func (b *builder) numberedRows(alias string, cols ...Column) string {
	text := b.rows(alias, 0, cols...)
	return strings.Replace(strings.TrimSuffix(text, ")")+", place)", ") as ", ") with ordinality as ", 1)
}

// stmt is the statement, with placeholders for the marks. Engines that do not
// number them get a parameter each time that the text names it, in its order.
func (b *builder) stmt() Stmt {
	numbered := b.server.Name() == dialect.Postgres
	s := Stmt{slots: b.slots}
	if numbered {
		s.params = b.params
	}
	var text strings.Builder
	for i, part := range strings.Split(b.text.String(), mark) {
		if i%2 == 0 { // between marks
			text.WriteString(part)
			continue
		}
		place, _ := strconv.Atoi(part) // as markOf wrote it
		if !numbered {
			s.params = append(s.params, b.params[place])
			place = len(s.params) - 1
		}
		text.WriteString(b.server.Placeholder(place + 1))
	}
	s.SQL = text.String()
	return s
}

// Engines whose statements grow with their batch see few different texts: for
// the powers of two up to 256, for 500, and for what doubling makes of that.

// Room is the least of these sizes into which n rows go.
func Room(n int) int {
	room := 1
	for room < n {
		room = larger(room)
	}
	return room
}

// FullRoom is the largest of these sizes that n rows, at least one, fill.
func FullRoom(n int) int {
	room := 1
	for larger(room) <= n {
		room = larger(room)
	}
	return room
}

func larger(room int) int {
	if room == 256 {
		return 500
	}
	return 2 * room
}
