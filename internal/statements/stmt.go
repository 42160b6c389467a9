package statements

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Stmt is a statement and the names of its parameters in the order of their
// placeholders. It is made once and run often: [Stmt.Bind] turns named values
// into the arguments of one run.
type Stmt struct {
	// SQL is the text, with the engine's own placeholders.
	SQL    string
	params []param
	size   int // rows of the batch, where the text grows with it
}

// param is one placeholder: a value by its name, or the whole batch, a whole column or one cell
// of it.
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
	wholeBatch
	cell
)

// Row is one row of a batch, in the order of the columns. Its cells are int64,
// string or nil, or pointers to fields, as [Columns.Rows] makes them. A pointer in an
// interface costs no allocation, and a value does.
type Row []any

// ID returns the first value of a row, the ID of a task.
func (r Row) ID() int64 {
	id, _ := valueOf(r[0]).(int64)
	return id
}

// Values are the arguments of one run of a statement.
type Values map[string]any

// Bind orders the arguments of one run. rows is the batch of a statement that
// takes one, and nil for the others. Bind panics when a value is missing or the
// batch has more rows than the statement was made for: both are mistakes of
// the calling code and never follow from data.
func (s Stmt) Bind(values Values, rows []Row) []any {
	if s.size > 0 && len(rows) > s.size {
		panic(fmt.Sprintf("statements: %d rows for a statement made for %d", len(rows), s.size))
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
			args[i] = arrayText(rows, p.col, p.typ)
		case wholeBatch:
			args[i] = jsonText(rows)
		case cell:
			switch {
			case p.row < len(rows):
				args[i] = valueOf(rows[p.row][p.col])
			case p.typ == Int: // of a row that the batch does not have: no task has the id 0
				args[i] = int64(0)
			}
		}
	}
	return args
}

// arrayText writes column i of rows as a PostgreSQL array literal, which every
// driver passes on unchanged.
func arrayText(rows []Row, i int, typ ColumnType) string {
	size := 2
	for _, row := range rows {
		size += 8
		if text, ok := textOf(row[i]); ok {
			size += len(text) + len(text)/8 // for escapes
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
		if n, ok := intOf(row[i]); ok {
			array.Write(strconv.AppendInt(digits[:0], n, 10))
		} else if text, ok := textOf(row[i]); ok {
			writeQuoted(&array, text)
		} else if valueOf(row[i]) == nil {
			array.WriteString(nullElement(typ))
		}
	}
	array.WriteByte('}')
	return array.String()
}

// nullElement is the element of an array that stands for NULL: the least integer, or a text that no document and no
// sensible error consists of. PostgreSQL itself would read an element NULL as a text in a session with array_nulls off.
func nullElement(typ ColumnType) string {
	if typ == Text {
		return "\x01"
	}
	return "-9223372036854775808"
}

// jsonText writes rows as a JSON array of arrays.
func jsonText(rows []Row) string {
	list := make([][]any, len(rows))
	for r, row := range rows {
		list[r] = make([]any, len(row))
		for c := range row {
			list[r][c] = valueOf(row[c])
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // no row has a value that JSON lacks
	}
	return string(text)
}

// intOf returns the whole number in a cell, and false if it holds something else.
func intOf(cell any) (n int64, ok bool) {
	switch cell := cell.(type) {
	case int64:
		return cell, true
	case *int64:
		return *cell, true
	case *int:
		return int64(*cell), true
	case *sql.Null[int64]:
		return cell.V, cell.Valid
	}
	return 0, false
}

// textOf returns the text in a cell, and false if it holds something else.
func textOf(cell any) (text string, ok bool) {
	switch cell := cell.(type) {
	case string:
		return cell, true
	case *string:
		return *cell, true
	case *sql.Null[string]:
		return cell.V, cell.Valid
	}
	return "", false
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

// On engines whose statements grow with their batch, statements are made for
// few sizes, so that few texts are prepared: the powers of two up to 256, then
// 500 and its doubles.

// SizeFor returns the smallest size that holds n rows.
func SizeFor(n int) int {
	size := 1
	for size < n {
		size = nextSize(size)
	}
	return size
}

// SizeFilledBy returns the largest size that n rows, at least one, fill.
func SizeFilledBy(n int) int {
	size := 1
	for nextSize(size) <= n {
		size = nextSize(size)
	}
	return size
}

func nextSize(size int) int {
	if size == 256 {
		return 500
	}
	return 2 * size
}
